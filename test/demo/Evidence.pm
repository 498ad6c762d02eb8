# What was written down while the demonstration ran, as one structure. Nothing of it comes from
# pg_pulse's tables, but for `answers` and `verify`, which hold what the server said at the end.
package Evidence;

use strict;
use warnings;
use JSON::PP qw(decode_json);

sub lines_of {
    my ($file) = @_;
    open my $handle, '<', $file or die "account: $file: $!\n";
    my @lines = <$handle>;
    chomp @lines;
    return @lines;
}

# What the producer added: id => { task, queue, payload }.
sub ledger {
    my ($file) = @_;
    my %job;
    for (lines_of($file)) {
        my ($id, $task, $queue, $payload) = split ' ', $_, 4;
        $job{$id} = { id => $id, task => $task, queue => $queue, payload => $payload };
    }
    return \%job;
}

# What the tasks wrote: each start with its stop, in the order of the starts.
sub executions {
    my ($file) = @_;
    my (@executions, %by_claim);
    for (lines_of($file)) {
        my ($what, $job, $token, @rest) = split ' ';
        if ($what eq 'start') {
            my ($task, $attempt, $worker, $name, $pid, $at) = @rest;
            push @executions, { job => $job, token => $token, task => $task, attempt => $attempt,
                                worker => $worker, name => $name, pid => $pid, start => $at };
            $by_claim{"$job $token"} = $executions[-1];
        }
        else {
            my $execution = $by_claim{"$job $token"} or die "account: an end without a start: $_\n";
            # The minder ends also the one that killed its worker; that is not how it ended.
            @$execution{qw(how stop detail)} = @rest if !$execution->{how};
        }
    }
    return \@executions;
}

# What was done to workers and what was announced: kind => [{ at, arguments… }].
sub timeline {
    my ($file) = @_;
    my %fields = (
        killed    => [qw(worker name pid by)],
        stopped   => [qw(worker name pid)],
        continued => [qw(worker name pid)],
        gone      => [qw(worker)],
        ended     => [qw(name pid status)],
        recovered => [qw(cause worker count jobs)],
    );
    my %timeline = map { $_ => [] } keys %fields;
    for (lines_of($file)) {
        my ($at, $kind, @rest) = split / /;
        my $names = $fields{$kind} or next;
        my %entry = (at => $at);
        @entry{@$names} = @rest;
        push @{ $timeline{$kind} }, \%entry;
    }
    return \%timeline;
}

# What the workers logged: event => [fields…].
sub logs {
    my (@files) = @_;
    my %logged;
    for my $file (@files) {
        for (lines_of($file)) {
            # The last line of a worker that was killed may be half a line.
            my $entry = eval { decode_json($_) } or next;
            push @{ $logged{ $entry->{event} } }, $entry;
        }
    }
    return \%logged;
}

# How many processes wanted a processor or a disk, each moment.
sub loads {
    my ($file) = @_;
    return [ map { my ($at, $wanting) = split ' '; { at => $at, wanting => $wanting } }
          lines_of($file) ];
}

sub read_all {
    my ($folder) = @_;
    my %answers = map { my ($id, @rest) = split ' '; $id => \@rest } lines_of("$folder/answers");
    my %settings = map { split ' ' } lines_of("$folder/settings");
    return {
        jobs => ledger("$folder/ledger"),
        executions => executions("$folder/executions"),
        timeline => timeline("$folder/timeline"),
        logged => logs(glob "'$folder'/workers/*.[0-9]*.log"),
        answers => \%answers,
        settings => \%settings,
        loads => loads("$folder/load"),
        violations => [lines_of("$folder/verify")],
    };
}

1;
