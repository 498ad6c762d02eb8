# The demonstration's account tells promises that were kept from speeds that were missed, and what
# the machine had to do meanwhile. What is written down here is a demonstration that nobody gave.
use strict;
use warnings FATAL => 'all';

use Cwd qw(getcwd);
use Test::More;

use PostgreSQL::Test::Utils;

my $tree = getcwd();
my $began = 1_700_000_000;
my $processors = 2;

sub write_lines {
    my ($file, @lines) = @_;
    unlink $file;
    append_to_file($file, join '', map { "$_\n" } @lines);
    return;
}

sub at { return sprintf '%.6f', $began + $_[0] }

# An execution: from when, to when and how, of which job, by which worker.
sub execution {
    my ($job, $token, $task, $attempt, $worker, $from, $to, $how, $detail) = @_;
    return ("start $job $token $task $attempt $worker w-$worker 9$worker " . at($from),
        defined $to ? "stop $job $token $how " . at($to) . ' ' . ($detail // '-') : ());
}

sub log_line {
    my ($event, $job, $attempt, $worker, $outcome) = @_;
    return qq({"event":"$event","job":$job,"attempt":$attempt,"worker":$worker,)
      . qq("outcome":"$outcome"});
}

sub completed { return log_line('completed', @_, 'completed') }

my @executions = (
    execution(2, 200, 'catalogue', 1, 11, 0, 0.2, 'completed', 7),
    execution(3, 300, 'flaky', 1, 11, 0, 0.1, 'failed'),
    execution(3, 301, 'flaky', 2, 11, 0.6, 0.7, 'failed'),
    execution(3, 302, 'flaky', 3, 11, 1.2, 1.3, 'completed'),
    execution(1, 100, 'survey', 1, 10, 0, undef),             # its worker is killed at 2
    execution(1, 101, 'survey', 2, 11, 4, 5, 'completed', '9:4'),
    execution(6, 600, 'survey', 1, 30, 8, 10.1, 'completed', '9:0'),    # stopped at 10
    execution(6, 601, 'survey', 2, 11, 13, 14, 'completed', '9:2'),
    execution(4, 400, 'poison', 1, 21, 20, 20.5, 'killing'),
    execution(5, 500, 'survey', 1, 21, 20, undef),
    execution(4, 401, 'poison', 2, 22, 22, 22.5, 'killing'),
    execution(4, 402, 'poison', 3, 23, 24, 24.5, 'killing'),
    execution(5, 501, 'survey', 2, 11, 25, 26, 'completed', '9:5'));

# What happened to the workers; a test changes moments of it.
sub timeline {
    my ($moment) = @_;
    return (at(2) . ' killed 10 w-10 910 job 1',
        at($moment->{recovered} // 2.4) . ' recovered session 10 1 1',
        at(10) . ' stopped 30 w-30 930 job 6',
        at($moment->{gone} // 11.2) . ' gone 30 931',
        at($moment->{silent} // 12.2) . ' recovered silence 30 1 6',
        map({ at(20.5 + 2 * $_) . ' killed ' . (21 + $_) . ' w 92' . (1 + $_) . ' itself',
              at(20.8 + 2 * $_) . ' recovered session ' . (21 + $_) . ' 1 4' } 0 .. 2),
        @{ $moment->{more} // [] });
}

# The account of it: the exit code and what it prints. The load is a number, or of each second.
sub account {
    my ($load, %moment) = @_;
    my $wanting = ref $load ? $load : sub { $load };
    my $folder = PostgreSQL::Test::Utils::tempdir();
    mkdir "$folder/workers" or die "$folder: $!\n";
    my @tasks = (undef, qw(survey catalogue flaky poison survey survey));
    write_lines("$folder/ledger", map { "$_ $tasks[$_] - {}" } 1 .. 6);
    write_lines("$folder/executions", @executions, @{ $moment{executions} // [] });
    write_lines("$folder/timeline", timeline(\%moment));
    write_lines("$folder/load", map { at($_ / 4) . ' ' . $wanting->($_ / 4) } 0 .. 120);
    write_lines("$folder/answers", '4 quarantined 3', @{ $moment{answers} // [] });
    write_lines("$folder/settings", 'disconnect_grace 300', 'heartbeat_interval 500',
        'sweep_interval 500', 'sweep_threshold 2000', "processors $processors");
    write_lines("$folder/verify");
    my @completions = (completed(1, 2, 11), completed(2, 1, 11), completed(3, 3, 11),
        completed(5, 2, 11), completed(6, 2, 11));
    pop @completions if $moment{loses};
    write_lines("$folder/workers/w.1.log", @completions,
        map({ log_line('failed', 3, $_, 11, 'failed') } 1, 2),
        log_line('stale', 6, 1, 30, 'completed'));
    my $said = `'$tree/test/demo/account' '$folder' 2>&1`;
    return ($? >> 8, $said);
}

subtest 'all was kept' => sub {
    my ($status, $said) = account(1);
    is($status, 0, 'it succeeds');
    like($said, qr/^Every promise was kept\.\n\z/m, 'and says so, last');
    unlike($said, qr/NOT KEPT|LATE|SLOW/, 'and nothing else');
    like($said, qr/^  load +1\.0  on the average, 1 at most: processes that wanted/m, 'the load');
};

# Each speed that it measures, too late.
my %late = (
    'recovery by session takes at most 500 ms, but took 714' => { recovered => 2.714 },
    'recovery by silence takes at most 3000 ms, but took 3400' => { silent => 13.4 },
    'the tasks of a stopped worker end within 2000 ms, but lived 2400' =>
      { gone => 12.4, silent => 12.6 },
    'the tasks of a stopped worker end as its jobs are recovered, but 300 ms later' =>
      { gone => 12.15, silent => 11.85 },
    # Its tasks end, and its job runs elsewhere, though it lives.
    'worker 12 was recovered (silence), but nobody did it any harm' => {
        more => [ at(28) . ' recovered silence 12 1 3' ],
    },
);

for my $speed (sort keys %late) {
    subtest "only the clock was late: $speed" => sub {
        my ($status, $said) = account(33, %{ $late{$speed} });
        is($status, 0, 'on a busy machine it succeeds');
        like($said, qr/^  LATE: \Q$speed\E; meanwhile the load was 33 on 2 processors$/m,
            'with the load of that time');
        like($said, qr/^Every promise was kept\. Not every speed was: .* more to do/m, 'and why');
        unlike($said, qr/NOT KEPT|failed\.$|SLOW/m, 'and does not say that anything failed');

        ($status, $said) = account(1, %{ $late{$speed} });
        is($status, 1, 'on one that is not busy it fails');
        like($said, qr/^  TOO SLOW: \Q$speed\E; meanwhile the load was 1 on/m, 'naming the speed');
        like($said, qr/failed: every promise was kept, but not in the time/, 'and the promises');
    };
}

subtest 'the server and the minder of a stopped worker count to the same moment' => sub {
    my ($status) = account(1, gone => 12.13, silent => 12.1);
    is($status, 0, 'so either may be the first');
};

subtest 'a load that came before or afterwards excuses nothing' => sub {
    my ($status) = account(sub { $_[0] > 1.9 && $_[0] < 2.8 ? 1 : 33 }, recovered => 2.714);
    is($status, 1, 'only that of the time itself counts');
    ($status) = account(2, recovered => 2.714);
    is($status, 1, 'and as many processes as processors are none');
};

subtest 'a broken promise is one on any machine' => sub {
    my ($status, $said) = account(33, recovered => 2.714, loses => 1);
    is($status, 1, 'it fails');
    like($said, qr/^  NOT KEPT: no job is lost, but these are: 6$/m, 'naming the promise');
    like($said, qr/^  LATE: recovery by session/m, 'beside the speed');
    like($said, qr/^The demonstration failed\.$/m, 'and says that it failed');
    ($status, $said) = account(33, more => [ at(28) . ' recovered session 12 1 3' ]);
    is($status, 1, 'so is a session that is said to have ended and did not');
};

done_testing();
