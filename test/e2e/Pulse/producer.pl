# The process behind Pulse::Producer: a session that adds jobs, in PostgreSQL's own protocol.
# usage: producer.pl NAME SOCKET
# Says `added ID` of each job whose commit the server has told, `refused CODE TEXT` of each error,
# and `cut` when the session is lost. After SIGUSR1 it says `stopped`.
use strict;
use warnings FATAL => 'all';

use IO::Socket::UNIX;
use Socket qw(SOCK_STREAM);
use Time::HiRes qw(sleep);

use constant {
    PROTOCOL => 196_608,    # 3.0
    PAUSE => 0.2,           # between two rounds, so that workers keep up
};

my ($name, $path) = @ARGV;
my $user = getpwuid $<;
my ($socket, $goes_on, $round) = (undef, 1, 0);

$| = 1;
$SIG{PIPE} = 'IGNORE';
$SIG{USR1} = sub { $goes_on = 0 };

while ($goes_on) {
    add_jobs($round++) if $socket || connect_session();
    sleep PAUSE;
}
print "stopped\n";

# Jobs of each kind, with a key, with a queue, and many at once.
sub add_jobs {
    my ($round) = @_;
    my $queue = 'q' . $round % 3;
    for (
        q{pulse.add_job('count')},
        q{pulse.add_job('run')},
        qq{pulse.add_job('count', queue_name => '$queue')},
        qq{pulse.add_job('stream', job_key => '$name $round')},
        q{pulse.add_jobs(array_fill('(count,,,,,,,)'::pulse.job_spec, '{7}'))},
        q{pulse.add_jobs(array_fill('(stream,,,,,,,)'::pulse.job_spec, '{12}'))})
    {
        print "added $_\n" for ask("SELECT id FROM $_");
    }
    return;
}

sub read_exactly {
    my ($length) = @_;
    my $bytes = '';
    while (length $bytes < $length) {
        my $count = sysread $socket, $bytes, $length - length $bytes, length $bytes;
        next if !defined $count && $!{EINTR};
        return if !$count;
    }
    return $bytes;
}

sub send_message {
    my ($letter, $body) = @_;
    return syswrite $socket, $letter . pack('N', length($body) + 4) . $body;
}

# The first columns of the rows that come until the server is ready again.
sub read_answer {
    my @rows;
    while (defined(my $head = read_exactly(5))) {
        my ($letter, $length) = unpack 'aN', $head;
        my $body = $length > 4 ? read_exactly($length - 4) : '';
        last if !defined $body;
        return @rows if $letter eq 'Z';
        push @rows, unpack 'x2 l>/a', $body if $letter eq 'D';
        if ($letter eq 'E') {
            my ($code, $text) = map { $body =~ /(?:^|\0)$_([^\0]*)/ ? $1 : '' } qw(C M);
            print "refused $code $text\n";
        }
    }
    print "cut\n";
    undef $socket;
    return;
}

sub connect_session {
    $socket = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $path) // return 0;
    my %session = (user => $user, database => 'postgres', application_name => $name);
    my $startup = join '', map { "$_\0$session{$_}\0" } sort keys %session;
    send_message('', pack('N', PROTOCOL) . "$startup\0");
    read_answer();
    return defined $socket;
}

sub ask {
    my ($query) = @_;
    return if !$socket;
    send_message('Q', "$query\0");
    return read_answer();
}
