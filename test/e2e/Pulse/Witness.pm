# What happened to jobs of queues, as the write-ahead log tells it: no word of pg_pulse about itself
# counts. PostgreSQL's test_decoding gives the committed changes in the order of their commits.
# Each start is judged by the settings that were committed before it.
package Pulse::Witness;
use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use List::Util qw(max);

use Pulse::Server;

# The server must run with wal_level = logical. What happens from now on is seen.
sub new {
    my ($class, $node) = @_;
    value($node, q{CREATE TABLE restart (live_us bigint PRIMARY KEY)});
    value($node, q{SELECT pg_create_logical_replication_slot('witness', 'test_decoding')});
    return bless {
        node => $node,
        paused => {},    # by level
        settings => {},
        jobs => {},      # by id: queue, token, whether it runs, whether it was ever started
        within => {},    # by level: running jobs of it and of all within it
        of_queue => {},  # by queue: jobs that were started and have not ended
        claims => {},    # by level: the moments of its claims since its settings changed
        latest => 0,     # the latest of these moments
        ahead => 0,      # how far they are ahead of the liveness clock
        starts => 0,
        at_limit => 0,
        broken => [],
    }, $class;
}

# Call it after a start that follows a crash, before any claim. The liveness clock does not count
# the time since the last sweep before a crash, so it shows some moments twice: the second time they
# count as later ones.
sub note_restart {
    my ($self) = @_;
    value($self->{node}, 'INSERT INTO restart SELECT pulse_internal.live_now_us()');
    return;
}

# Reads and judges what has been committed. To be called once: after a crash of the server the
# slot would begin anew.
sub read_log {
    my ($self) = @_;
    my $node = $self->{node};
    open my $log, '-|', 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c',
      q{COPY (SELECT data FROM pg_logical_slot_get_changes('witness', NULL, NULL,
          'include-xids', '0') WHERE data LIKE 'table pulse.job:%'
             OR data LIKE 'table pulse.queue:%'
             OR data LIKE 'table pulse.queue_pause:%'
             OR data LIKE 'table public.restart:%') TO STDOUT}
      or croak "psql: $!";
    while (my $line = <$log>) {
        my ($table, $change, $row) = $line =~ /\Atable \w+\.(\w+): (\w+): (.*)/ or croak $line;
        if ($table eq 'restart') {
            # It may also be later than the last claim.
            $self->{ahead} = max($self->{ahead}, $self->{latest} - _field($row, 'live_us'));
        } elsif ($table eq 'queue') {
            $self->_set($change, $row);
        } elsif ($table eq 'queue_pause') {
            $self->_pause($change, $row);
        } else {
            $self->_change_job($change, $row);
        }
    }
    close $log or croak "psql: $?";
    $self->_judge_rates($_) for keys %{ $self->{claims} };
    return;
}

sub starts { return $_[0]{starts} }

# Starts that took the last place of a level, or left less than a token.
sub at_limit { return $_[0]{at_limit} }

# What must be empty: a line for each start that broke a limit, ten at most.
sub broken {
    my ($self) = @_;
    my @some = @{ $self->{broken} };
    return join "\n", @some[ 0 .. ($#some < 9 ? $#some : 9) ];
}

sub _field {
    my ($row, $name) = @_;
    my ($value) = $row =~ /(?:\A| )$name\[[^\[\]:]+\]:('(?:[^']|'')*'|\S+)/
      or croak "no $name in $row";
    if ($value eq 'null') {
        $value = undef;
    } elsif ($value =~ s/\A'(.*)'\z/$1/s) {
        $value =~ s/''/'/g;
    }
    return $value;
}

sub _levels {
    my ($queue) = @_;
    my @parts = split m{/}, $queue, 4;
    return map { join '/', @parts[ 0 .. $_ ] } 0 .. $#parts;
}

# --- settings ------------------------------------------------------------------------------------

sub _set {
    my ($self, $change, $row) = @_;
    my $name = _field($row, 'queue_name');
    # The rates of members may be those of their level.
    $self->_judge_rates($_) for keys %{ $self->{claims} };
    $self->{claims} = {};
    return delete $self->{settings}{$name} if $change eq 'DELETE';
    my %stored = map { $_ => _field($row, $_) }
      qw(concurrency total is_strict rate per burst);
    $stored{per} = _seconds($stored{per} // '00:00:01');
    $stored{burst} //= $stored{rate};
    $stored{is_strict} = $stored{is_strict} eq 'true';
    $self->{settings}{$name} = \%stored;
    return;
}

# What operators paused and resumed by name.
sub _pause {
    my ($self, $change, $row) = @_;
    return if _field($row, 'job_id') != 0;
    my $name = _field($row, 'queue_name');
    return delete $self->{paused}{$name} if $change eq 'DELETE';
    $self->{paused}{$name} = _field($row, 'is_paused') eq 'true';
    return;
}

sub _seconds {
    my ($interval) = @_;
    my ($hours, $minutes, $seconds) = $interval =~ /\A(\d+):(\d+):([\d.]+)\z/
      or croak "interval $interval";
    return $hours * 3600 + $minutes * 60 + $seconds;
}

# What holds for a level: its own, or that of the members.
sub _at {
    my ($self, $what, $level) = @_;
    my $members = $level =~ s{/[^/]*\z}{/*}r;
    return $self->{$what}{$level} // ($members ne $level ? $self->{$what}{$members} : undef);
}

sub _settings_at {
    my ($self, $level) = @_;
    return $self->_at('settings', $level) // { concurrency => 1 };
}

# --- jobs ----------------------------------------------------------------------------------------

sub _change_job {
    my ($self, $change, $row) = @_;
    my $id = _field($row, 'id');
    my $job = $self->{jobs}{$id} //= { id => $id, queue => '' };
    if ($change eq 'DELETE') {
        $self->_leave($job);
        delete $self->{of_queue}{ $job->{queue} }{$id};
        delete $self->{jobs}{$id};
        return;
    }
    my $queue = _field($row, 'queue_name') // '';
    if ($queue ne $job->{queue}) {
        delete $self->{of_queue}{ $job->{queue} }{$id};
        @{$job}{qw(queue started)} = ($queue, 0);
    }
    my $token = _field($row, 'state') eq 'running' ? _field($row, 'token') : undef;
    return if ($token // 0) == ($job->{token} // 0);
    $self->_leave($job);
    $self->_start($job, $token, $row) if defined $token;
    return;
}

sub _leave {
    my ($self, $job) = @_;
    return if !defined delete $job->{token};
    $self->{within}{$_}-- for _levels($job->{queue});
    $self->{own}{ $job->{queue} }--;
    return;
}

sub _start {
    my ($self, $job, $token, $row) = @_;
    my $queue = $job->{queue};
    $self->{starts}++;
    $self->_judge_strict($job) if $queue ne '' && $self->_settings_at($queue)->{is_strict};
    @{$job}{qw(token started)} = ($token, 1);
    return if $queue eq '';
    $self->{of_queue}{$queue}{ $job->{id} } = $job;
    my $own = ++$self->{own}{$queue};
    my $most = $self->_settings_at($queue)->{concurrency};
    $self->_break("$own of $most jobs run in queue $queue", $job) if $own > $most;
    my $at = _field($row, 'claimed_live_us') + $self->{ahead};
    $self->{latest} = max($self->{latest}, $at);
    for my $level (_levels($queue)) {
        my $set = $self->_settings_at($level);
        my $taken = ++$self->{within}{$level};
        $self->_judge("$taken of $set->{total} jobs run in level $level", $job, $taken,
            $set->{total})
          if defined $set->{total};
        push @{ $self->{claims}{$level} }, $at if defined $set->{rate};
        $self->_break("level $level is paused", $job)
          if $self->_at('paused', $level);
    }
    return;
}

sub _judge {
    my ($self, $what, $job, $taken, $most) = @_;
    $self->{at_limit}++ if $taken == $most;
    $self->_break($what, $job) if $taken > $most;
    return;
}

sub _break {
    my ($self, $what, $job) = @_;
    push @{ $self->{broken} }, "job $job->{id}: $what";
    return;
}

# Of jobs that were started before the queue was strict, the one with the least id goes first.
sub _judge_strict {
    my ($self, $job) = @_;
    for my $other (values %{ $self->{of_queue}{ $job->{queue} } }) {
        next if $other == $job;
        $self->_break("$other->{id} of strict queue $job->{queue} has not ended", $job)
          if defined $other->{token} || !$job->{started} || $other->{id} < $job->{id};
    }
    return;
}

# Each window of time has at most rate x window / per + burst claims if and only if a vessel never
# holds more than `burst`, into which each claim pours one and which loses `rate` in each `per`.
sub _judge_rates {
    my ($self, $level) = @_;
    my $set = $self->_settings_at($level);
    my ($filled, $last) = (0, 0);
    for my $at (sort { $a <=> $b } @{ delete $self->{claims}{$level} // [] }) {
        $filled = max(0, $filled - ($at - $last) / 1e6 * $set->{rate} / $set->{per}) + 1;
        $last = $at;
        $self->{at_limit}++ if $filled > $set->{burst} - 1;
        push @{ $self->{broken} }, "level $level: $filled of $set->{burst} claims at $at"
          if $filled > $set->{burst} + 1e-6;
    }
    return;
}

1;
