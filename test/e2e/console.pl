# pulse prints what its views say, as tables and as JSON, and ends with the status that fits.
use strict;
use warnings FATAL => 'all';

use IPC::Run ();
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Console;
use Pulse::Lines;
use Pulse::Program;
use Pulse::Prose;
use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;

use constant { DONE => 0, USAGE => 64, NO_DATABASE => 69, OUTPUT_LOST => 74,
    NO_RIGHT => 77 };

my $node = start_server('main', settings => \%PATIENT);
for my $kind (qw(observer operator producer)) {
    value($node, "CREATE ROLE a_$kind LOGIN; SELECT pulse.grant_$kind('a_$kind')");
}
value($node, 'CREATE ROLE stranger LOGIN');

subtest 'version, help and mistakes' => sub {
    is(pulse($node, '--version')->{out}, "pulse 0.2.0\n", 'the version');
    is(pulse($node, '--help')->{status}, DONE, 'help is no mistake');
    my $said = pulse($node);
    is($said->{status}, USAGE, 'a command is needed');
    like($said->{err}, qr/which command\?/, 'and asked for');
    $said = pulse($node, '--nonsense');
    is($said->{err}, "pulse: there is no option '--nonsense'; pulse --help lists them\n",
        'an option that is none is named');
    $said = pulse($node, 'nonsense');
    is($said->{status}, USAGE, 'an unknown command');
    is($said->{err}, "pulse: there is no command 'nonsense'; pulse --help lists them\n",
        'is named');
    is(pulse($node, 'workers', '--nonsense')->{status}, USAGE, 'an unknown option');
};

subtest 'rates and times of tasks and queues' => sub {
    my $worker = Pulse::SqlWorker->new($node, 'two');
    value($node, q{SELECT pulse.add_job('rated', queue_name => 'rated',
        run_at => now() - interval '1 s')});
    $worker->complete($worker->must_claim);
    $worker->query("SELECT pulse.deregister_worker($worker->{id})");
    my ($task) = grep { $_->{identifier} eq 'rated' } @{ rows_of($node, 'tasks') };
    cmp_ok($task->{$_}, '>', 0, "a task has $_, though no job waits")
      for qw(per_minute wait_p50 wait_p99 run_p50 run_p99);
    my ($queue) = grep { $_->{name} eq 'rated' } @{ rows_of($node, 'queues') };
    cmp_ok($queue->{per_minute}, '>', 0, 'and a queue how many ended');
};

subtest 'depths stand in the order of stats, with a plus behind a part' => sub {
    value($node, q{INSERT INTO pulse.job (identifier, run_at)
        SELECT 'both', now() + interval '1 h' * side
          FROM generate_series(1, 1000), unnest('{-1,1}'::int[]) AS side
        UNION ALL VALUES ('a young task', now() - interval '1 min'),
                         ('an old task', now() - interval '1 d')});
    my $stats = value($node, q{SELECT string_agg(s.name, ',')
        FROM (SELECT name FROM pulse.stats(of_kind => 'task') WHERE name IS NOT NULL) AS s});
    my %is_listed = map { $_ => 1 } split /,/, $stats;
    is(join(',', grep { $is_listed{$_} } map { $_->{identifier} } @{ rows_of($node, 'tasks') }),
        $stats, 'tasks of which nothing was claimed for longest come first');
    like(pulse($node, 'tasks')->{out}, qr/^both +[\d,]+\+ +[\d,]+\+ /m, 'a table has a plus');
    like(pulse($node, 'overview')->{out}, qr/^ready +[\d,]+\+$/m, 'so has a record');
    value($node, q{DELETE FROM pulse.job WHERE identifier IN ('both', 'a young task',
        'an old task')});
};

subtest 'a worker that the next sweep finds lost is silent' => sub {
    my $worker = value($node, q{SELECT id FROM pulse.register_worker('quiet')});
    value($node, "UPDATE pulse.heartbeat SET beat_live_us = beat_live_us - 2000000000
        WHERE worker_id = $worker");
    my ($quiet) = grep { $_->{name} eq 'quiet' } @{ rows_of($node, 'workers') };
    is($quiet->{status}, 'silent', 'in the list');
    is(json_of(pulse($node, '--json', 'overview')->{out})->{workers_silent}, 1,
        'as the overview counts it');
    value($node, "SELECT pulse.declare_lost($worker, 'it was quiet')");
};

subtest 'what a script must notice' => sub {
    for my $option (qw(task queue key error)) {
        is(pulse($node, 'cancel', "--$option", '', '--yes')->{status}, USAGE,
            "an empty $option is no filter");
    }
    my $holder = Pulse::Session->new($node);
    $holder->query('BEGIN; LOCK TABLE pulse.job IN ACCESS EXCLUSIVE MODE');
    {
        local $ENV{PGOPTIONS} = '-c statement_timeout=100ms';
        is(pulse($node, 'jobs')->{status}, 1, 'a timeout of the server is no interrupt');
    }
    $holder->quit;
    my $database = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';
    for my $command ([ '-d', $database, '--json', 'workers', '--all' ], [ 'token', 'ada', 'r' ]) {
        my $err = '';
        IPC::Run::run([ 'pulse', @{$command} ], '<', '/dev/null', '>', '/dev/full', '2>', \$err);
        is($? >> 8, 74, "a full disk loses no output without a word: $command->[-1]");
        unlike($err, qr/[0-9a-f]{64}/, 'and no secret is shown in vain');
    }
};

subtest 'workers and queues' => sub {
    my $worker = Pulse::Session->new($node);
    my $id = $worker->query(q{SELECT id FROM pulse.register_worker('one', '{mail,other}')});
    value($node, q{SELECT pulse.add_job('mail', queue_name => 'letters')});
    my ($row) = @{ rows_of($node, 'workers') };
    is($row->{id}, $id, 'the id of the worker');
    like(pulse($node, '--json', 'workers')->{out}, qr/"id": "$id"/, 'ids are strings');
    is_deeply($row->{tasks}, [ 'mail', 'other' ], 'the tasks of the worker');
    my $said = pulse_as($node, 'a_observer', 'workers');
    like($said->{out}, qr/^ *worker +name .*\n *$id +one .* alive .*mail, other\n\z/, 'a table');
    unlike($said->{out}, qr/\e/, 'no colours where no terminal is');
    $worker->query("SELECT pulse.deregister_worker($id)");
    is_deeply(rows_of($node, 'workers'), [], 'a worker that ended is left out');
    is(rows_of($node, 'workers', '--all')->[0]{status}, 'stopped', 'but not with --all');
    is(rows_of($node, 'queues')->[0]{name}, 'letters', 'the queue with a job');
};

subtest 'jobs, page by page' => sub {
    my $add = q{SELECT id FROM pulse.add_job('paged', job_key => 'k%d')};
    my @ids = map { value($node, sprintf $add, $_) } 1 .. 5;
    my $rows = rows_of($node, 'jobs', '--task', 'paged', '-n', 2);
    is_deeply([ map { $_->{id} } @{$rows} ], [ @ids[4, 3] ], 'the newest first, as many as asked');
    $rows = rows_of($node, 'jobs', '--task', 'paged', '--before', $ids[3]);
    is_deeply([ map { $_->{id} } @{$rows} ], [ @ids[2, 1, 0] ], 'the next page');
    is_deeply([ map { $_->{id} } @{ rows_of($node, 'jobs', '--key', 'k2') } ], [ $ids[1] ],
        'by key');
    is(scalar @{ rows_of($node, 'jobs', '-s', 'ready,parked', '-t', 'paged', '--older', '1h') }, 0,
        'by age');
    my $later = value($node,
        q{SELECT id FROM pulse.add_job('paged_later', run_at => now() + interval '1 h')});
    like(pulse($node, 'jobs', '-t', 'paged_later')->{out}, qr/^ *$later +paged_later +scheduled /m,
        'a job that is due later is shown as scheduled');
    is(rows_of($node, 'jobs', '-t', 'paged_later')->[0]{state}, 'ready', 'scripts read its state');
    like(pulse($node, 'job', $later)->{out}, qr/^state +scheduled$/m, 'so is it for itself');
    like(pulse($node, 'jobs', '-t', 'paged')->{out}, qr/ paged +ready /, 'and no other is');
    value($node, "SELECT pulse.cancel_job($later)");
    is(pulse($node, 'jobs', '--older', 'soon')->{status}, USAGE, 'a bad duration');
    is(pulse($node, 'jobs', '--before', '-1')->{status}, USAGE, 'a bad id');
    my $said = pulse($node, 'jobs', '--state', 'gone');
    is($said->{status}, 1, 'the server refuses an unknown state');
    like($said->{err}, qr/hint: States are ready/, 'with a hint');
};

subtest 'one job' => sub {
    my $worker = Pulse::Session->new($node);
    my $id = value($node,
        q{SELECT id FROM pulse.add_job('told', '{"n": 12345678901234567890.10}')});
    my $ann = $worker->query(q{SELECT id FROM pulse.register_worker('ann', '{told}')});
    my $token = $worker->query("SELECT token FROM pulse.claim($ann)");
    $worker->query("SELECT pulse.progress($id, $token, 'half way', 0.5)");
    my $said = pulse($node, 'job', $id);
    like($said->{out}, qr/^state +running$/m, 'its state');
    like($said->{out}, qr/^Why\n +running +Worker $ann has it/m, 'why it waits, or not');
    like($said->{out}, qr/running +\[#{10}-{10}\]$/m, 'its progress');
    my $child = value($node, "SELECT id FROM pulse.add_job_after(ARRAY[$id], 'after')");
    like(pulse($node, 'job', $child)->{out},
        qr/^Why\n +parents .* 1 of 1 live: $id\.\n(?:.*\n)* +root .* job $id of task 'told'/m,
        'of one that waits for it, which');
    value($node, "SELECT pulse.cancel_job($child)");
    like($said->{out}, qr/"n": 12345678901234567890\.10/, 'its payload, each digit');
    my $owner = value($node, 'SELECT current_user');
    like($said->{out}, qr/^added by +\Q$owner\E$/m, 'its producer');
    $worker->query("SELECT pulse.fail($id, $token, 'out of ink', retry => false)");
    my $told = json_of(pulse($node, '--json', 'job', $id)->{out});
    is($told->{attempts}[0]{error}, 'out of ink', 'the error of its attempt');
    is($told->{attempts}[0]{worker}, 'ann', 'the worker of its attempt');
    is($told->{job}{state}, 'failed', 'its end');
    $said = pulse_as($node, 'a_observer', 'job', $id);
    unlike($said->{out}, qr/ink|"n"/, 'an observer sees neither error nor payload');
    like($said->{out}, qr/ 1 .* failed /, 'but the attempt');
    is(pulse($node, 'job', '999999')->{status}, 1, 'an unknown job');
};

subtest 'adding a job' => sub {
    my $said = pulse_as($node, 'a_producer', '--json', 'add', 'mail', '[1]', '--in', '2h',
        '--key', 'once', '--priority', '-3', '--flag', 'a', '--flag', 'b');
    my $job = json_of($said->{out});
    is(value($node, "SELECT ROW(payload::text, priority, job_key, flags,
        run_at > now() + interval '1 h') FROM pulse.job WHERE id = $job->{id}"),
        '([1],-3,once,"{a,b}",t)', 'it has what the options say');
    $said = pulse_as($node, 'a_producer', '--json', 'add', 'mail', '--after', $job->{id});
    is(json_of($said->{out})->{state}, 'parked', 'a job after another waits');
    my @once = ('add', 'once', '{"n": 1}', '--once', 'key', '--for', '1h', '--priority', '3');
    like(pulse_as($node, 'a_producer', @once)->{out}, qr/^job \d+ added: waiting/,
        'one in a period');
    like(pulse_as($node, 'a_producer', @once)->{out}, qr/^job \d+ was there: waiting/, 'not two');
    is(value($node, q{SELECT string_agg(payload::text || priority, ' ') FROM pulse.job
        WHERE identifier = 'once'}), '{"n": 1}3', 'with what was asked for');
    is(pulse($node, 'add', 'once', '--once', 'key')->{status}, USAGE, 'a key needs a period');
    is(pulse($node, 'add', 'once', '--for', '1h')->{status}, USAGE, 'and a period a key');
    like(pulse_as($node, 'a_producer', 'forget', 'once', 'key')->{out}, qr/^forgotten/,
        'the period can be ended');
    $said = pulse($node, 'forget', 'once', 'key');
    is($said->{status}, 1, 'once');
    like($said->{err}, qr/no period of key key of task once/, 'and it says why');
    value($node, q{DELETE FROM pulse.job WHERE identifier = 'once'});
    is(pulse($node, 'add', 'mail', '{bad')->{status}, USAGE, 'a payload must be JSON');
    $said = pulse($node, 'add', 'mail', '--at', 'bogus');
    is($said->{status}, USAGE, 'so is a time that is none');
    like($said->{err}, qr/"bogus".*hint: --help/s, 'and what it was is said');
    is(pulse_as($node, 'a_observer', 'add', 'mail')->{status}, NO_RIGHT, 'an observer adds none');
    $said = do { local $Pulse::Console::stdin = '/'; pulse($node, 'add', 'mail', '-') };
    is($said->{status}, USAGE, 'a payload that cannot be read is none');
    like($said->{err}, qr/cannot read standard input: /, 'and that is said');
    my $odd = value($node, q{SELECT id FROM pulse.add_job('odd', '{"a": "\u0000", "b": 1e400}')});
    $said = pulse($node, 'job', $odd);
    is($said->{status}, DONE, 'a job whose payload no function reads is shown');
    like($said->{out}, qr/\{"a": "\\u0000", "b": 1e400\}/, 'as it is');
};

subtest 'queues, schedules and workers are steered' => sub {
    is(pulse_as($node, 'a_operator', 'queues', 'pause', 'letters')->{status}, DONE, 'a pause');
    my ($queue) = grep { $_->{name} eq 'letters' } @{ rows_of($node, 'queues') };
    ok($queue->{paused}, 'is seen');
    pulse($node, 'queues', 'resume', 'letters');
    my $said = pulse($node, 'queues', 'limit', 'letters');
    is($said->{status}, USAGE, 'a limit without a number is none');
    $said = pulse($node, '--json', 'queues', 'limit', 'letters', '--concurrency', '7');
    is(json_of($said->{out})->{concurrency}, 7, 'what was set is told as JSON');
    ($queue) = grep { $_->{name} eq 'letters' } @{ rows_of($node, 'queues') };
    is_deeply([ $queue->{paused}, $queue->{concurrency} ], [ JSON::PP::false, 7 ],
        'resumed, with its limit');
    $said = pulse($node, '--json', 'queues', 'limit', 'letters', '--rate', '5', '--per', '1min',
        '--fair', 'yes', '--weight', '3');
    is_deeply([ @{ json_of($said->{out}) }{qw(concurrency rate per fair weight)} ],
        [ 7, 5, '00:01:00', JSON::PP::true, 3 ], 'a rate and turns, beside the limit that it had');
    $said = pulse($node, 'queues', 'limit', 'letters', '--concurrency', '0');
    like($said->{err}, qr/concurrency is 0.*\n.*between 1 and/, 'a limit out of range is told');
    value($node, q{SELECT pulse.schedule('nightly', 'mail', '0 3 * * *')});
    $said = pulse($node, '--json', 'schedules', 'pause', 'nightly');
    ok(json_of($said->{out})->{paused}, 'and so is a pause');
    ok(rows_of($node, 'schedules')->[0]{paused}, 'a schedule is paused');
    is(scalar @{ rows_of($node, 'schedules', 'next', 'nightly') }, 10, 'its next due times');
    my $ann = value($node, q{SELECT id FROM pulse.register_worker('drained')});
    $said = pulse($node, '--json', 'schedules', 'run', 'nightly', '--yes');
    is(value($node, 'SELECT identifier FROM pulse.job WHERE id = ' . json_of($said->{out})->{id}),
        'mail', 'and the job that a schedule has added');
    value($node, q{SELECT pulse.set_task('paint', max_attempts => 3)});
    ok(json_of(pulse($node, '--json', 'tasks', 'unset', 'paint')->{out})->{had_settings},
        'settings of a task are taken away');
    is(value($node, q{SELECT max_attempts FROM pulse.task_settings WHERE identifier = 'paint'}), '',
        'all of them');
    ok(json_of(pulse($node, '--json', 'queues', 'unset', 'letters')->{out})->{had_settings},
        'and that a queue had settings');
    $said = pulse($node, 'workers', 'drain', $ann);
    is($said->{status}, 1, 'without a terminal and --yes nothing is drained');
    is(value($node, "SELECT status FROM pulse.worker_status WHERE id = $ann"), 'alive', 'indeed');
    is(pulse($node, 'workers', 'drain', $ann, '--yes')->{out}, "worker $ann is draining\n",
        'with --yes it is');
};

subtest 'completion and manual know every command, and pages no other' => sub {
    my ($below) = pulse($node, '--help')->{out} =~ /^Subcommands:\n(.*)/ms;
    my @commands = $below =~ /^  ([a-z]+)/mg;
    cmp_ok(scalar @commands, '>', 15, 'there are commands');
    my $complete = 'source console/share/pulse.bash; COMP_WORDS=(pulse ""); COMP_CWORD=1; _pulse; '
      . 'printf "%s\n" "${COMPREPLY[@]}"';
    my ($words) = run_command([ 'bash', '-c', $complete ]);
    my %completed = map { $_ => 1 } split /\n/, $words;
    is_deeply([ grep { !$completed{$_} } @commands ], [], 'bash completes each');
    my $manual = slurp_file('console/share/pulse.1');
    is_deeply([ grep { $manual !~ /\b$_\b/ } @commands ], [], 'the manual has each');
    my %known = map { $_ => 1 } @commands;
    my @named = map { prose_of($_) =~ /(?:^|`)pulse ([a-z]+)\b/mg }
      glob 'README.md docs/*.md docs/recipes/*.md worker/*.md';
    cmp_ok(scalar @named, '>', 20, 'the pages name commands');
    is_deeply([ grep { !$known{$_} } @named ], [], 'and only such as there are');
};

subtest 'tail tells recoveries and failures' => sub {
    my $database = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';
    my $looks = q{SELECT EXISTS (SELECT FROM pg_stat_activity
        WHERE application_name = 'pulse' AND query LIKE '%ended_jobs%')};
    my $tail = Pulse::Program->start('tail', [ 'pulse', '-d', $database, 'tail' ]);
    wait_until($node, $looks, 'it looks');
    my $eve = value($node, q{SELECT id FROM pulse.register_worker('eve', '{tailed}')});
    my @ids = map { value($node, q{SELECT id FROM pulse.add_job('tailed')}) } 1 .. 2;
    value($node, "SELECT pulse.claim($eve, 2)");
    value($node, "SELECT pulse.fail(id, token, 'x', retry => false) FROM pulse.job
        WHERE id = $ids[0]");
    $tail->lines->wait_for('the failure',
        sub { $_[0] =~ /  failed  job $ids[0]  tailed  attempt 1 of 25$/ });
    value($node, "SELECT pulse.declare_lost($eve, 'gone')");
    $tail->lines->wait_for('the recovery',
        sub { $_[0] =~ /  recovered  \w+  jobs $ids[1] of worker $eve / });
    $tail->signal('INT');
    is($tail->wait_exit, 'signal 2', 'an interrupt ends it');
    wait_until($node, $looks =~ s/EXISTS/NOT EXISTS/r, 'and its session');
    my $full = Pulse::Program->start('full',
        [ 'sh', '-c', "exec pulse -d '$database' tail >/dev/full" ]);
    wait_until($node, $looks, 'another looks');
    value($node, q{SELECT pg_notify('pulse_events', '{"event": "none"}')});
    is($full->wait_exit, OUTPUT_LOST, 'so does an output that takes no more');
};

# The postmaster takes the connection of a cancellation, and does not come to read from it.
subtest 'interrupts while the server hangs' => sub {
    my $database = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';
    my $other = Pulse::Session->new($node);
    $other->query('BEGIN; LOCK TABLE pulse.job IN ACCESS EXCLUSIVE MODE');
    my $jobs = Pulse::Program->start('jobs', [ 'pulse', '-d', $database, 'jobs' ]);
    wait_until($node, q{SELECT EXISTS (SELECT FROM pg_stat_activity
        WHERE application_name = 'pulse' AND wait_event_type = 'Lock')}, 'a statement waits');
    my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
    my $sockets = sub {
        return scalar grep { (readlink // '') =~ /^socket/ } glob '/proc/' . $jobs->pid . '/fd/*';
    };
    kill 'STOP', $postmaster;
    $jobs->signal('INT');
    my $end = time + $PostgreSQL::Test::Utils::timeout_default;
    Pulse::Lines::pause() while $sockets->() < 2 && time < $end;
    is($sockets->(), 2, 'the first one asks the server to cancel');
    $jobs->signal('INT');
    my $ended = $jobs->{process}->wait_gone;
    kill 'CONT', $postmaster;
    ok($ended, 'the second one ends the program');
    is($jobs->wait_exit, 'signal 2', 'at once');
    $other->query('ROLLBACK');
};

subtest 'no database, no extension, no right' => sub {
    my $said = pulse_as($node, 'stranger', 'workers');
    is($said->{status}, NO_RIGHT, 'status of a role without rights');
    like($said->{err}, qr/grant_observer\('stranger'\)/, 'says who gives the right');
    $node->safe_psql('postgres', 'CREATE DATABASE bare');
    my $bare = 'host=' . $node->host . ' port=' . $node->port . ' dbname=bare';
    $said = pulse_at($bare, 'workers');
    is($said->{status}, NO_DATABASE, 'status without the extension');
    like($said->{err}, qr/database bare has no pg_pulse.*CREATE EXTENSION pg_pulse/s,
        'the way out');
    $said = pulse_at('host=/nonexistent dbname=x', 'workers');
    is($said->{status}, NO_DATABASE, 'status without a server');
    is(pulse_at("host='", 'workers')->{status}, USAGE, 'a bad connection string');
};

expect_healthy($node);
done_testing();
