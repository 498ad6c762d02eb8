# P6: many workers share three sessions of the server behind a transaction pooler. None keeps a
# session while it has nothing to do, none is taken for dead, and each gets its share of the jobs.
# With PULSE_LONG ten workers for PULSE_MINUTES, else five for four rounds.
use strict;
use warnings FATAL => 'all';

use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;
use Pulse::Api;
use Pulse::Pooler;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

plan skip_all => 'no pgbouncer is installed' if !Pulse::Pooler->is_installed;

use constant POOL => 3;

my $is_long = $ENV{PULSE_LONG} // 0;
my $count = $is_long ? 10 : 5;
my $seconds = $is_long ? 60 * ($ENV{PULSE_MINUTES} // 5) : 0;

# Nobody that lives is silent for so long, however slow the machine.
my $node = start_server('main',
    settings => {
        %QUICK,
        'pulse.heartbeat_interval' => '500ms',
        'pulse.sweep_interval' => '500ms',
        'pulse.sweep_threshold' => '45s',
        'pulse.poll_interval' => '300ms',
    });
value($node, 'CREATE SCHEMA app');
value($node, q{CREATE FUNCTION app.touch(payload json) RETURNS void LANGUAGE sql AS 'SELECT'});
value($node, q{SELECT pulse.set_task('touch', backoff => 'none', handler => 'app.touch(json)'),
    pulse.set_task('meet', backoff => 'none'), pulse.set_task('quick', backoff => 'none')});

# It closes sessions all the time, so that a worker that were tied to one would be taken for dead.
my $pooler = Pulse::Pooler->start($node, 'pooler',
    size => POOL, settings => [ 'server_lifetime = 1', 'server_idle_timeout = 1' ]);
my $tasks = Pulse::Tasks->new(quick => 'tell ran', meet => 'tell came; wait_at meeting');
my @workers =
  map { Pulse::Worker->start_registered($node, "worker$_", tasks => $tasks, $pooler->address) }
  1 .. $count;

my $alive = q{SELECT count(*) FROM pulse.worker_status WHERE status = 'alive'};
my $left = 'SELECT count(*) = 0 FROM pulse.job';
my ($rounds, @ids) = (0);
my $end = time + $seconds;
while ($rounds < 4 || time < $end) {
    $rounds++;
    # One slot each: they are together only if each worker gets one.
    my @meetings = add_jobs($node, 'meet', $count);
    $tasks->wait_for('came', job => $_) for @meetings;
    $tasks->open_gate('meeting', $count);
    push @ids, @meetings, add_jobs($node, 'quick', 10), add_jobs($node, 'touch', 10),
      add_jobs($node, 'quick', 3, 'serial');
    wait_until($node, $left, 'all jobs are done');
    # Idle workers beat, and leave the sessions to each other.
    my %from = map { ($_->name => $_->lines->position) } @workers;
    $_->wait_for('heartbeat', from => $from{ $_->name }, count => 4) for @workers;
}
note "$rounds rounds";

is(value($node, $alive), $count, 'all workers live');
is(value($node, 'SELECT count(*) FROM pulse.worker'), $count, 'and none had to register anew');
is( value($node, q{SELECT string_agg(DISTINCT format('%s %s %s', state, attempts, crashes), ', ')
        FROM pulse.finished_job}), 'completed 1 0', 'each job completed in its first attempt');
is(value($node, 'SELECT count(*) FROM pulse.finished_job'), scalar @ids, 'all of them did');
# What is held ahead goes back at times, which is no attempt.
is( value($node, q{SELECT string_agg(DISTINCT outcome, ' ') FROM pulse.attempt
        WHERE outcome NOT IN ('completed', 'released')}), '', 'no attempt was lost');
my %runs;
$runs{ $_->{job} }++ for map { $tasks->told($_) } qw(ran came);
is_deeply([ grep { $_ != 1 } values %runs ], [], 'each task ran once');
is(scalar($workers[0]->events('pooled')), 1, 'the log says once that there is a pooler');
is(value($node, 'SELECT count(attachment) FROM pulse.heartbeat'), 0, 'no session stands for one');

subtest 'a death is noticed by its silence' => sub {
    my $id = add_job($node, 'meet');
    $tasks->wait_for('came', job => $id);
    my ($victim) = grep { $_->events('claimed', job => $id) } @workers;
    $victim->kill;
    # Of the dead one, for whom no session stands: a minute passes.
    value($node, 'UPDATE pulse.heartbeat SET beat_live_us = beat_live_us - 60000000
        WHERE worker_id = ' . $victim->id);
    $tasks->wait_for('came', job => $id, attempt => 2);
    $tasks->open_gate('meeting', 2);
    wait_until($node, $left, 'the job is done');
    is(outcomes($node, $id), 'lost completed', 'its job completed elsewhere');
    @workers = grep { $_ != $victim } @workers;
};

subtest 'pulse serve takes no role in a session that others share' => sub {
    my %address = $pooler->address;
    my $place = "host=$address{host} port=$address{port}";
    my $api = Pulse::Api->start($node, 'serve', database => $place);
    my $answer = $api->curl(GET => '/v1/jobs/1');
    is($answer->{status}, 503, 'it refuses');
    like($answer->{body}, qr/-d names the database itself.*A pooler stands between/,
        'and says why');
    my ($settings) = run_command([ 'psql', '-XAtd', "$place dbname=postgres", '-c',
        q{SELECT current_user = session_user, current_setting('default_transaction_read_only')} ]);
    is($settings, 't|off', 'other clients keep what is theirs');
};

$_->signal('TERM') for @workers;
is($_->wait_exit, 0, $_->name . ' drains') for @workers;
is(scalar(map { $_->events('lost') } @workers), 0, 'none was told that it was lost');
expect_healthy($node);
done_testing();
