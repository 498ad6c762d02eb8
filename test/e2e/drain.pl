# How pulse-worker stops: drained, forced, after --once, or because it cannot work at all; with
# which exit code, and what becomes of its jobs.
use strict;
use warnings FATAL => 'all';

use Test::More;

use File::Basename qw(dirname);
use PostgreSQL::Test::Utils;
use Pulse::Lines;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

use constant { DRAINED => 0, USAGE => 64, DATABASE_GONE => 69, EXHAUSTED => 71, FORCED => 75 };
use constant CONFIGURATION => 78;

my $node = start_server('main', settings => { %QUICK, 'pulse.sweep_threshold' => '30s' });
my $tasks = Pulse::Tasks->new(
    run => 'tell ran',
    pass => 'wait_at passers; tell ran',
    fall => 'exit 1',
    linger => 'tell began; wait_at lingerers; tell ended',
    stubborn => q{trap '' TERM; tell began; while :; do wait_at never; done});
my $workers = 0;

sub start {
    return Pulse::Worker->start_registered($node, 'worker-' . ++$workers, tasks => $tasks, @_);
}

sub live {
    my ($id) = @_;
    return value($node,
        "SELECT state, attempts, crashes, run_at <= now() FROM pulse.job WHERE id = $id");
}

sub state_of {
    my ($worker) = @_;
    return value($node, 'SELECT state FROM pulse.worker WHERE id = ' . $worker->id);
}

# A worker with a job that its task has begun.
sub start_with_job {
    my ($task, $more, @options) = @_;
    my $worker = start(options => \@options);
    my $job = add_job($node, $task, $more);
    return ($worker, $job, $tasks->process($tasks->wait_for('began', job => $job)));
}

subtest 'drained: what runs may finish, and nothing new begins' => sub {
    my ($worker, $job) = start_with_job('linger');
    $worker->signal('TERM');
    $worker->wait_for('draining');
    my $later = add_job($node, 'run');
    $worker->wait_for('heartbeat', status => 'alive', from => $worker->lines->position, count => 2);
    is(live($later), 'ready|0|0|t', 'a job that comes now is left to others');
    $tasks->open_gate('lingerers');
    is($worker->wait_exit, DRAINED, 'exit code');
    is(finished($node, $job), 'completed|1|0', 'the job that ran is completed');
    is(state_of($worker), 'stopped', 'the worker has said good-bye');
    is(live($later), 'ready|0|0|t', 'the other job still waits');
    value($node, "SELECT pulse.cancel_job($later)");
};

subtest 'drained: jobs that it had not started go back as if never claimed' => sub {
    my $worker = start();
    my @jobs = add_jobs($node, 'pass', 300);
    $tasks->open_gate('passers', 60);
    $worker->wait_for('completed', count => 60);
    $worker->signal('INT');
    $worker->wait_for('draining');
    $tasks->open_gate('passers', 300);
    is($worker->wait_exit, DRAINED, 'exit code');
    note scalar($worker->events('released')) . ' jobs were released';
    is( value($node, q{SELECT DISTINCT state, attempts, crashes FROM pulse.job}),
        'ready|0|0', 'whatever is left has all its attempts');
    my $ids = join ',', @jobs;
    is( value($node, "SELECT count(*) FROM unnest('{$ids}'::bigint[]) AS id
            WHERE NOT EXISTS (SELECT FROM pulse.job AS j WHERE j.id = id)
              AND NOT EXISTS (SELECT FROM pulse.finished_job AS f
                               WHERE f.id = id AND f.state = 'completed' AND f.attempts = 1)"),
        0, 'and the rest is completed');
    my %runs;
    $runs{ $_->{job} }++ for $tasks->told('ran');
    is_deeply([ grep { $_ > 1 } values %runs ], [], 'no task ran twice');
};

subtest 'once: until nothing is ready' => sub {
    # However slow the machine is, its next attempt is not due before the rest is done.
    value($node, q{SELECT pulse.set_task('fall', backoff_base => '1 hour',
        backoff_cap => '1 day')});
    my $failing = add_job($node, 'fall', q{priority => -1});
    my $future = add_job($node, 'run', q{run_at => now() + interval '1 day'});
    my $worker = start(concurrency => 3, options => ['--once']);
    is($worker->wait_exit, DRAINED, 'exit code');
    is(value($node, 'SELECT string_agg(id::text, \' \' ORDER BY id) FROM pulse.job'),
        "$failing $future", 'all that was ready is done');
    is(live($failing), 'ready|1|0|f', 'a failed job waits for its next attempt');
    is(state_of($worker), 'stopped', 'the worker has said good-bye');
    is(start(options => ['--once'])->wait_exit, DRAINED, 'also when there was nothing');
    value($node, 'SELECT pulse.cancel_job(id) FROM pulse.job');
};

subtest 'forced: when the grace is over' => sub {
    my ($worker, $job, $process) = start_with_job('stubborn', undef, '--grace', '200ms');
    $worker->signal('TERM');
    is($worker->wait_exit, FORCED, 'exit code');
    ok($process->wait_gone, 'the task is gone');
    is(outcomes($node, $job), 'interrupted', 'the attempt was interrupted');
    is(live($job), 'ready|1|0|t', 'it is consumed, no crash, ready at once');
    is(state_of($worker), 'stopped', 'the worker has said good-bye');
    value($node, "SELECT pulse.cancel_job($job)");
};

subtest 'forced: at the second signal' => sub {
    my ($worker, $job, $process) = start_with_job('linger', undef, '--grace', '1h');
    $worker->signal('TERM');
    $worker->wait_for('draining');
    $worker->signal('TERM');
    my $echo = $worker->wait_for('signal_ignored');
    cmp_ok($echo->{next_counts_in_ms}, '<=', 5000, 'what follows at once is the same wish');
    while (!$worker->events('forcing')) {
        $worker->signal('TERM');
        Pulse::Lines::pause();
    }
    is($worker->wait_exit, FORCED, 'exit code');
    ok($process->wait_gone, 'the task is gone');
    is(outcomes($node, $job), 'interrupted', 'the attempt was interrupted');
    is(live($job), 'ready|1|0|t', 'it is consumed, no crash, ready at once');
    my $next = start();
    $tasks->wait_for('began', job => $job, attempt => 2);
    $tasks->open_gate('lingerers');
    $next->wait_for('completed', job => $job);
    $next->signal('TERM');
    is($next->wait_exit, DRAINED, 'another worker does it again');
};

subtest 'forced: in the last attempt' => sub {
    my ($worker, $job) = start_with_job('linger', 'max_attempts => 1', '--grace', '0ms');
    $worker->signal('TERM');
    is($worker->wait_exit, FORCED, 'exit code');
    is(finished($node, $job), 'failed|1|0', 'the job failed');
    is(outcomes($node, $job), 'interrupted', 'because it was interrupted');
};

subtest 'drained: also while the server is away' => sub {
    my $worker = start();
    $worker->wait_until_idle;
    $node->stop;
    $worker->wait_for('reconnecting', connection => 'heartbeat');
    $worker->signal('TERM');
    is($worker->wait_exit, DRAINED, 'exit code');
    $node->start;
};

# Exit code and complaint of a worker that cannot work.
sub complaint {
    my ($name, %options) = @_;
    my $worker = Pulse::Worker->start($node, $name, tasks => $tasks, %options);
    my $code = $worker->wait_exit;
    return ($code, join ' ', $worker->lines->lines);
}

subtest 'usage' => sub {
    for my $options (
        ['--concurrency', '0'], ['--no-such-option'], ['--grace', 'soon'], ['surplus'],
        [ '--name', "\xff" ]) {
        my ($code, $said) = complaint('usage-' . ++$workers, options => $options);
        is($code, USAGE, "@$options");
        isnt($said, '', 'it says why');
    }
    my ($code) = complaint('usage-' . ++$workers, database => 'postgres no_such_option=1');
    is($code, USAGE, 'a connection string that cannot be read');
    ($code, my $said) = complaint('usage-' . ++$workers, database => 'postgres port=5432x');
    is($code, USAGE, 'a port that is none');
    like($said, qr/'5432x' is no number of a port/, 'and it says so');
    command_like([ 'pulse-worker', '--version' ], qr/^pulse-worker \d+\.\d+\.\d+$/, 'its version');
    command_like([ 'pulse-worker', '--help' ], qr/--grace/, 'its help');
    my $worker = dirname(__FILE__) . '/../../worker';
    my $pages = join '', map { slurp_file("$worker/$_.md") }
      qw(README operating handlers ../docs/tasks ../docs/programs);
    my ($help) = run_command([ 'pulse-worker', '--help' ]);
    my @missing = grep { $pages !~ /\Q$_\E(?![a-z-])/ } $help =~ /(--[a-z][a-z-]*)/g;
    is_deeply([ grep { !/^--(?:help|version)$/ } @missing ], [], 'each option stands in its pages');
};

subtest 'the database is gone for good' => sub {
    my ($code, $said) = complaint('no-database', database => 'nowhere');
    is($code, DATABASE_GONE, 'no such database');
    like($said, qr/database \\"nowhere\\" does not exist/, 'and it says so');
    like($said, qr/\(PGHOST, PGDATABASE, .*\) say where to connect/, 'with the way out');
    ($code, $said) = complaint('no-role', database => 'postgres user=nobody_here');
    is($code, DATABASE_GONE, 'no such role');
    value($node, 'CREATE DATABASE plain');
    ($code, $said) = complaint('no-extension', database => 'plain');
    is($code, DATABASE_GONE, 'no extension');
    like($said, qr/schema \\"pulse\\" does not exist/, 'and it says so');
    like($said, qr/database plain has no pg_pulse/, 'in the words of an operator');
};

subtest 'a machine with too few descriptors' => sub {
    my ($code, $said) = complaint('exhausted',
        under => [ 'sh', '-c', 'ulimit -n 10; exec "$@"', 'sh' ]);
    is($code, EXHAUSTED, 'is told from a crash');
    like($said, qr/pulse-worker: \w+: Too many open files/, 'and it says so');
    my $folder = PostgreSQL::Test::Utils::tempdir('files');
    append_to_file("$folder/$_", '') for qw(env crontab);
    my @files = ('--env-file' => "$folder/env", '--crontab' => "$folder/crontab");
    my $lives = 0;
    # With each descriptor more, the start comes one step further, until the worker lives.
    for my $limit (4 .. 60) {
        my $worker = Pulse::Worker->start($node, "with-$limit", tasks => $tasks,
            options => [ @files, '--http' => '127.0.0.1:0' ],
            under => [ 'sh', '-c', qq{ulimit -n $limit; exec "\$@"}, 'sh' ]);
        my $is_alive = sub { $_[0] =~ /"event":"(?:registered|reconnecting)"/ };
        $lives = eval { $worker->lines->wait_for('its life', $is_alive) };
        last if $lives;
        is($worker->wait_exit, EXHAUSTED, "a start with $limit descriptors")
          or diag $worker->lines->lines;
    }
    ok($lives, 'at last there are enough');
};

subtest 'what runs once does not wait for ever' => sub {
    value($node, 'CREATE DATABASE off');
    value($node, 'CREATE EXTENSION pg_pulse', 'off');
    value($node, 'ALTER DATABASE off SET pulse.claims = off');
    my ($code, $said) = complaint('once-off', database => 'off', options => ['--once']);
    is($code, CONFIGURATION, 'where claims are off');
    like($said, qr/Set pulse\.claims = on where jobs are to run/, 'and it says what mends that');
    ($code, $said) = complaint('once-nowhere', host => 'no-such-host.invalid',
        options => ['--once']);
    is($code, DATABASE_GONE, 'where no server is found');
    like($said, qr/no answer of the server for 1min: .*no-such-host\.invalid/, 'and it says so');
};

subtest 'configuration' => sub {
    my $folder = $tasks->folder;
    my ($code, $said) = complaint('no-folder', folder => "$folder/none");
    is($code, CONFIGURATION, 'no such folder of tasks');
    ($code, $said) = complaint('file-for-folder', folder => '/etc/passwd');
    is($code, CONFIGURATION, 'a file in its place');
    like($said, qr{/etc/passwd is not a folder}, 'and it says so');
    mkdir "$folder/empty" or die $!;
    ($code, $said) = complaint('empty-folder', folder => "$folder/empty");
    is($code, CONFIGURATION, 'nothing to serve');
    like($said, qr/it serves no task: no executable/, 'and it says so');
    rmdir "$folder/empty" or die $!;
    ($code, $said) = complaint('no-program', options => [ '--process', 'greet=nosuchcommand' ]);
    is($code, CONFIGURATION, 'a process whose program is not there');
    like($said, qr/--process: cannot start nosuchcommand: it is not in PATH/, 'and it is named');
    chmod 0777, $folder;
    ($code, $said) = complaint('open-folder');
    is($code, CONFIGURATION, 'a folder that everybody can write to');
    chmod 0755, $folder;
    ($code, $said) = complaint('slow', options => [ '--heartbeat-interval', '1min' ]);
    is($code, CONFIGURATION, 'a heartbeat too slow for the threshold');
    value($node, 'CREATE ROLE stranger LOGIN');
    ($code, $said) = complaint('no-right', database => 'postgres user=stranger');
    is($code, CONFIGURATION, 'a role without rights');
};

expect_healthy($node);
done_testing();
