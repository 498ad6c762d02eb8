# Queries of a test, all read by one psql that stays, one after the other in one session: to start a
# psql, and to start a session, each cost more processor time than most queries need. Nothing of a
# query is left for the next: the session forgets its settings, locks, temporary tables and plans.
#
# Always holds: $psql->{place} is where psql has a session, or had one that the server has ended. A
# query for another place, or after such an end, gets a new session. Whoever needs the end of a
# session calls hang_up(), or takes a Pulse::Session.
package Pulse::Psql;

use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use IO::Select;
use IO::Socket::UNIX;
use IPC::Open3 qw(open3);
use List::Util qw(max min);
use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils qw(slurp_file);

use constant {
    DONE => 'psql has read it',
    # Seconds from one look to the next; who answers slowly is asked less often.
    SHORTEST_PAUSE => 0.02,
    LONGEST_PAUSE => 0.1,
    PAUSES_PER_ANSWER => 5,
    # "Authentication is done", and "ready, in no transaction".
    WELCOME => pack('A N N', 'R', 8, 0) . pack('A N A', 'Z', 5, 'I'),
};

# The psql of this process, if there is one.
my $psql;

# What the server answers; dies when it refuses. What it says beside is printed.
sub answer {
    my ($node, $database, $query) = @_;
    _connect($node, $database, 1);
    my ($answer, $said) = _read($query);
    croak "psql ended: $said\nwhile it read: $query" if !defined $answer;
    # A session has the settings of its role and database from its start, and a worker is attached
    # until its session ends. After \connect psql is elsewhere.
    hang_up() if $query =~ /\bALTER\s+(?:ROLE|DATABASE)\b|\battach_worker\b|\\c/i;
    print "#### Begin standard error\n$said\n#### End standard error\n" if $said ne '';
    return $answer;
}

# Whether the answer becomes t in the time that every wait has. One session asks until something
# else than an answer comes.
sub becomes_true {
    my ($node, $database, $query) = @_;
    my ($waited, $answer, $said, $is_so) = (0, undef, '', 0);
    until ($is_so || $waited >= $PostgreSQL::Test::Utils::timeout_default) {
        my $asked = time;
        if (!defined $answer || $said ne '') {
            hang_up() if $said ne '';
            _connect($node, $database, 0);
        }
        ($answer, $said) = _read($query);
        $is_so = defined $answer && $answer eq 't' && $said eq '';
        last if $is_so;
        my $pause = min(LONGEST_PAUSE, max(SHORTEST_PAUSE, PAUSES_PER_ANSWER * (time - $asked)));
        Time::HiRes::sleep($pause);
        $waited += $pause;
    }
    diag "$query\nis not t but '", $answer // '', "' $said" if !$is_so;
    return $is_so;
}

# A session that knows of no query before. psql has user and options from its environment, so other
# ones need another psql.
sub _connect {
    my ($node, $database, $stops) = @_;
    my $place = $node->connstr($database);
    my $environment = join "\0", map { "$_=$ENV{$_}" } grep { /^(?:PG|LANG|LC_)/ } sort keys %ENV;
    _end() if $psql && ($psql->{owner} != $$ || $psql->{environment} ne $environment);
    $stops = "\\set ON_ERROR_STOP $stops\n";
    return _send($stops) if $psql && $psql->{place} eq $place && _forgets();
    if ($psql) {
        _send("$stops\\connect ${\_quoted($place)}\n");
        $psql->{place} = $place;
    } else {
        _start($node, $place, $environment);
        _send($stops);
    }
    return;
}

# Whether the session is still there. psql ends with its session.
sub _forgets {
    _send("\\set ON_ERROR_STOP 1\nDISCARD ALL;\n");
    return 1 if defined _wait_done();
    _end();
    return 0;
}

sub _start {
    my ($node, $place, $environment) = @_;
    my $folder = PostgreSQL::Test::Utils::tempdir_short();
    open my $errors, '>>', "$folder/errors" or croak "$folder/errors: $!";
    my @command = ($node->installed_command('psql'), '-XAtq', '-d', $place, '-f', '-');
    my $pid = open3(my $to, my $from, '>&' . fileno $errors, @command);
    my $nowhere = IO::Socket::UNIX->new(Local => "$folder/.s.PGSQL.1", Listen => 1)
      or croak "$folder: $!";
    $psql = { owner => $$, environment => $environment, folder => $folder, pid => $pid, to => $to,
        from => $from, nowhere => $nowhere, place => $place };
    return;
}

# The answer, and what was said beside it; no answer if psql ended.
sub _read {
    my ($query) = @_;
    my $folder = $psql->{folder};
    open my $file, '>', "$folder/query" or croak "$folder/query: $!";
    print {$file} $query;
    close $file or croak "$folder/query: $!";
    _send("\\i ${\_quoted(qq{$folder/query})}\n");
    my $answer = _wait_done();
    my $said = slurp_file("$folder/errors");
    truncate "$folder/errors", 0 or croak "$folder/errors: $!";
    _end() if !defined $answer;
    chomp $said;
    return ($answer, $said);
}

# What psql prints until it has read all that it was sent, without the last line's end.
sub _wait_done {
    _send("\\echo '${\DONE}'\n");
    my $printed = '';
    until ($printed =~ s/\n?^${\DONE}\n\z//m) {
        my $got = sysread $psql->{from}, $printed, 65536, length $printed;
        return if !($got // $!{EINTR});
    }
    return $printed;
}

# Ends the session; the next query gets a new one. A psql that does not talk to a terminal ends with
# its session, so it changes to one of this test, which asks nothing and answers nothing. Only then
# is the other session gone.
sub hang_up {
    return if !$psql;
    $psql->{place} = '';
    my $options = 'port=1 user=nobody sslmode=disable gssencmode=disable';
    _send("\\connect ${\_quoted(qq{host='$psql->{folder}' $options})}\n");
    my $ready;
    ($ready) = IO::Select->new($psql->{nowhere}, $psql->{from})->can_read until $ready;
    if ($ready == $psql->{nowhere}) {
        my $session = $psql->{nowhere}->accept or croak "accept: $!";
        sysread $session, my $request, 4096;
        syswrite $session, WELCOME;
        $psql->{session} = $session;
        return if defined _wait_done();
    }
    _end();
    return;
}

sub _quoted { return "'" . $_[0] =~ s/([\\'])/\\$1/gr . "'" }

# A psql that has ended says so where its answer is read.
sub _send {
    my ($text) = @_;
    local $SIG{PIPE} = 'IGNORE';
    syswrite $psql->{to}, $text;
    return;
}

# A process that was forked has no psql of its own.
sub _end {
    my $ended = $psql;
    undef $psql;
    return if !$ended || $ended->{owner} != $$;
    close $ended->{to};
    local ($?, $!);
    waitpid $ended->{pid}, 0;
    return;
}

END { _end() }

1;
