# P2, P3, P5: the same jobs as executables, as persistent processes, as handlers in C++ and
# as functions of the database. In the middle one of three workers is killed and one is stopped
# until it is lost: all jobs are done, each completes once, what a lost claim still writes is
# refused, and nothing is left running.
use strict;
use warnings FATAL => 'all';

use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;
use Pulse::ExampleWorker;
use Pulse::Handlers;
use Pulse::Process;
use Pulse::Server;
use Pulse::Session;
use Pulse::Tasks;
use Pulse::Worker;

use constant JOBS => $ENV{PULSE_JOBS} // 250;
use constant { MIDDLE => int 0.3 * JOBS, CONCURRENCY => 4, DRAINED => 0 };

# Transactions go on when their clients are gone: nothing but the fence is in their way.
my $node =
  start_server('main', settings => { %QUICK, client_connection_check_interval => '0',
    # No worker that lives is silent for so long, however busy the machine is.
    'pulse.sweep_threshold' => '6s' });
my $middle = MIDDLE;
$node->safe_psql('postgres', <<"SQL");
CREATE SCHEMA app;
CREATE TABLE app.effect (place int GENERATED ALWAYS AS IDENTITY, job_id bigint, token bigint);
-- From the middle on, everybody waits before he commits while somebody holds the gate's lock.
CREATE FUNCTION app.write(job_id bigint, token bigint) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
  place int;
BEGIN
  INSERT INTO app.effect AS e (job_id, token) VALUES (write.job_id, write.token)
    RETURNING e.place INTO place;
  IF place > $middle THEN
    PERFORM set_config('application_name', 'job ' || job_id, true);
    PERFORM pg_advisory_xact_lock_shared(1);
  END IF;
END \$\$;
CREATE FUNCTION app.sink(job_id bigint, token bigint) RETURNS void LANGUAGE sql AS \$\$
  SELECT app.write(job_id, token);
  SELECT pulse.fence(job_id, token); \$\$;
-- perform_job() does the fencing.
CREATE FUNCTION app.perform(job pulse.claimed_job) RETURNS void LANGUAGE sql AS \$\$
  SELECT app.write(job.id, job.token) \$\$;
SELECT pulse.set_task('sink', backoff => 'none');
SQL
my $database = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';

# What makes a worker one of each kind, or why it cannot be tried here.
sub as_executables {
    my $tasks = Pulse::Tasks->new(
        sink => "exec psql -qXAt -v ON_ERROR_STOP=1 '$database' "
          . '-c "SELECT app.sink($PULSE_JOB_ID, $PULSE_TOKEN)"');
    return { tasks => $tasks };
}

sub as_processes {
    my $python = Pulse::ExampleWorker->command('session_worker.py');
    return $python if !ref $python;
    return { options =>
          [ '--process', "sink=$python->[0] test/e2e/processes/sink.py '$database'" ] };
}

sub as_handlers {
    return { program => Pulse::Handlers::build('test/e2e/handlers') . '/pulse-handlers' };
}

sub as_functions {
    value($node, q{SELECT pulse.set_task('sink', handler => 'app.perform(pulse.claimed_job)')});
    return {};
}

# What the gate keeps waiting, of each of these workers.
sub wait_until_in_the_middle {
    my (@workers) = @_;
    my $ids = join ',', map { $_->id } @workers;
    wait_until($node, 'SELECT count(DISTINCT w.id) = ' . @workers . " FROM pulse.worker AS w,
          pulse.held(w.id) AS j JOIN pg_stat_activity AS a ON a.application_name = 'job ' || j.id
         WHERE a.wait_event = 'advisory' AND w.id IN ($ids)", 'each has a job at the gate');
    # One that has passed the gate's place may commit later than others have come to the gate.
    wait_until($node, "SELECT count(*) = $middle FROM app.effect", 'they are in the middle');
    pass('they are in the middle');
    return;
}

sub wait_until_lost {
    my (@workers) = @_;
    my $ids = join ',', map { $_->id } @workers;
    wait_until($node, 'SELECT count(*) = ' . @workers . " FROM pulse.worker
        WHERE state = 'lost' AND id IN ($ids)", 'they are lost');
    return;
}

sub expect_none_alive {
    my ($what, @processes) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is_deeply([ map { $_->pid } grep { !$_->wait_gone } @processes ], [], $what);
    return;
}

# `ids` of all jobs, and the kind. What a stopped worker lost is interrupted once it comes back.
sub expect_once {
    my ($ids, $kind) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is(value($node, "SELECT DISTINCT ended FROM (
            SELECT string_agg(outcome, ' ' ORDER BY token) AS ended FROM pulse.attempt
             WHERE job_id IN ($ids) GROUP BY job_id) AS each
         WHERE ended !~ '^((lost|interrupted|released) )*completed\$'"), '',
        'each completed once, in its last attempt');
    my $effects = 'FROM app.effect JOIN pulse.attempt AS a USING (job_id, token) WHERE a.outcome';
    is(value($node, "SELECT count(DISTINCT job_id) $effects = 'completed'"), JOBS,
        'what completed had written');
    # Between its effect and its report a worker may die, but for a function these are one.
    my $since = $kind eq 'functions' ? 0 : MIDDLE;
    is(value($node, "SELECT count(*) $effects <> 'completed' AND place > $since"), 0,
        'and no lost claim has');
    is(value($node, 'SELECT count(*) FROM app.effect
        WHERE (job_id, token) NOT IN (SELECT job_id, token FROM pulse.attempt)'), 0,
        'nor anybody else');
    cmp_ok(value($node, "SELECT count(*) FROM pulse.attempt
        WHERE outcome = 'lost' AND job_id IN ($ids)"), '>=', 2, 'though there were some');
    return;
}

sub survives {
    my ($kind, $options) = @_;
    my $began = time;
    value($node, 'TRUNCATE app.effect RESTART IDENTITY');
    my $gate = Pulse::Session->new($node);
    $gate->query('SELECT pg_advisory_lock(1)');
    # What descends from the workers has it, too, whoever its parent is by then.
    local $ENV{TMPDIR} = PostgreSQL::Test::Utils::tempdir($kind);
    my %options = (concurrency => CONCURRENCY, %$options);
    my ($doomed, $frozen, $other) =
      map { Pulse::Worker->start_registered($node, "$_-$kind", %options) }
      qw(doomed frozen other);
    my @jobs = add_jobs($node, 'sink', JOBS);
    wait_until_in_the_middle($doomed, $frozen, $other);

    my @orphans = map { Pulse::Process->family($_->pid) } $doomed, $frozen;
    is($doomed->kill, 'signal 9', 'one is killed');
    $frozen->signal('STOP');
    wait_until_lost($doomed, $frozen);
    expect_none_alive('what they ran is gone', grep { $_->pid != $frozen->pid } @orphans);
    $gate->quit;
    $frozen->signal('CONT');
    my $ids = join ',', @jobs;
    wait_until($node, 'SELECT count(*) = ' . JOBS . " FROM pulse.finished_job
        WHERE id IN ($ids) AND state = 'completed'", 'all are done');
    $frozen->wait_for('registered', count => 2);
    for ($frozen, $other) {
        $_->signal('TERM');
        is($_->wait_exit, DRAINED, $_->name . ' drains');
    }
    expect_once($ids, $kind);
    expect_none_alive('nothing is left running',
        Pulse::Process->with_environment("TMPDIR=$ENV{TMPDIR}"));
    is(value($node, 'SELECT * FROM pulse.verify()'), '', 'verify() is empty');
    note sprintf '%.1f s', time - $began;
    return;
}

# Last the functions, because a task that has one is run by all workers.
for my $kind (
    [ executables => \&as_executables ],
    [ processes => \&as_processes ],
    [ handlers => \&as_handlers ],
    [ functions => \&as_functions ])
{
    my ($name, $make) = @$kind;
    subtest $name => sub {
        my $options = $make->();
        plan skip_all => $options if !ref $options;
        survives($name, $options);
    };
}

expect_healthy($node);
done_testing();
