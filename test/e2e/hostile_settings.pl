# What a database sets for the sessions of other programs changes no answer: one database for each
# setting, and in each the same jobs by pulse-worker, the background worker, `pulse`, `pulse serve`
# and pg_cron. They differ in nothing from a database that sets nothing.
use strict;
use warnings FATAL => 'all';

use Test::More;

BEGIN { $ENV{PG_TEST_TIMEOUT_DEFAULT} //= 120 }
use PostgreSQL::Test::Utils;
use Pulse::Api;
use Pulse::Console;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my @settings = (
    [ 'default_transaction_isolation', 'serializable' ],
    [ 'default_transaction_isolation', 'repeatable read' ],
    [ 'default_transaction_isolation', 'read uncommitted' ],
    [ 'default_transaction_read_only', 'on' ],
    [ 'default_transaction_deferrable', 'on' ],
    [ 'statement_timeout', '5s' ],
    [ 'lock_timeout', '50ms' ],
    [ 'idle_session_timeout', '1s' ],
    [ 'idle_in_transaction_session_timeout', '1s' ],
    [ 'transaction_timeout', '1s' ],
    [ 'synchronous_commit', 'off' ],
    [ 'standard_conforming_strings', 'off' ],
    [ 'DateStyle', 'SQL, DMY' ],
    [ 'IntervalStyle', 'iso_8601' ],
    [ 'IntervalStyle', 'sql_standard' ],
    [ 'TimeZone', 'Pacific/Apia' ],
    [ 'bytea_output', 'escape' ],
    [ 'extra_float_digits', '-15' ],
    [ 'search_path', '' ],
    [ 'quote_all_identifiers', 'on' ],
    [ 'client_min_messages', 'error' ],
    [ 'client_encoding', 'LATIN1' ],
    [ 'check_function_bodies', 'off' ],
    [ 'plpgsql.extra_errors', 'all' ],
    [ 'plpgsql.variable_conflict', 'use_column' ],
    [ 'plpgsql.variable_conflict', 'use_variable' ],
    [ 'session_replication_role', 'replica' ],
    [ 'row_security', 'off' ],
    [ 'array_nulls', 'off' ],
    [ 'transform_null_equals', 'on' ],
    [ 'plan_cache_mode', 'force_generic_plan' ],
    [ 'plan_cache_mode', 'force_custom_plan' ],
    [ 'force_parallel_mode', 'on' ],
    [ 'debug_parallel_query', 'on' ],
    [ 'enable_seqscan', 'off' ],
    [ 'enable_indexscan', 'off' ],
    [ 'enable_bitmapscan', 'off' ],
    [ 'enable_nestloop', 'off' ],
    [ 'jit_above_cost', '0' ],
    [ 'work_mem', '64kB' ],
    [ 'commit_delay', '1000' ],
);

my $has_cron = -f server_folder('pkglibdir') . '/pg_cron.so';
my $node = start_server('main',
    settings => {
        %PATIENT,
        'pulse.disconnect_grace' => '0',
        shared_preload_libraries => $has_cron ? 'pg_pulse, pg_cron' : 'pg_pulse',
        ($has_cron ? ('cron.use_background_workers' => 'on', 'cron.max_running_jobs' => 50) : ()),
        max_connections => 200,
        max_worker_processes => 100,
    });

# psql in one database after the other; what it prints stands behind the name of each.
sub in_each {
    my ($databases, $statements) = @_;
    my $script = join "\n", map { "\\connect $_\n\\echo database $_\n$statements" } @{$databases};
    my (%printed, $database);
    for (split /\n/, value($node, $script)) {
        if (/^database (\w+)$/) { $database = $1 }
        else { $printed{$database} .= "$_\n" }
    }
    return \%printed;
}

# Nobody has used the database that they are made from, so none of them is a copy.
value($node, 'CREATE DATABASE seed');
value($node, <<'SQL', 'seed');
CREATE EXTENSION pg_pulse;
CREATE ROLE client;
SELECT pulse.grant_producer('client'), pulse.grant_worker('client'),
  pulse.grant_observer('client'), pulse.grant_operator('client');
CREATE SCHEMA app;
CREATE FUNCTION app.greet(payload json) RETURNS json LANGUAGE sql AS
  $$ SELECT json_build_object('hello', payload ->> 'name') $$;
SELECT pulse.set_task('greet', handler => 'app.greet(json)', keep_completed => '1 day'),
  pulse.set_task('lost', backoff => 'none'), pulse.set_task('late', timeout => '1 s'),
  pulse.set_task('tell', keep_completed => '1 day'), pulse.set_task('curl');
SQL
my (%setting_of, @databases);
for my $setting ([ 'nothing', '' ], @settings) {
    my ($name, $value) = @{$setting};
    my $database = sprintf 'd%02d', scalar @databases;
    my $is_known = $name =~ /^plpgsql/ || $name eq 'nothing'
      || value($node, "SELECT current_setting('$name', true) IS NOT NULL") eq 't';
    next if !$is_known;
    push @databases, $database;
    $setting_of{$database} = "$name = '$value'";
    value($node, "CREATE DATABASE $database TEMPLATE seed");
    value($node, "ALTER DATABASE $database SET $name = '$value'") if $name ne 'nothing';
}

# What became of the jobs of a database. What is held ahead goes back at times, which is no attempt.
# Each database has ids of workers of its own.
my $tables = <<'SQL';
SELECT 'live', identifier, state, attempts, crashes, recovered,
  regexp_replace(last_error, 'worker [0-9]+', 'worker') FROM pulse.job ORDER BY id;
SELECT 'ended', identifier, state, attempts, crashes,
  regexp_replace(last_error, 'worker [0-9]+', 'worker'), result FROM pulse.finished_job ORDER BY id;
SELECT 'attempt', job_id, outcome, regexp_replace(error, 'worker [0-9]+', 'worker')
  FROM pulse.attempt WHERE outcome <> 'released' ORDER BY job_id, token;
SQL

# Each database against the first, which sets nothing.
sub differs_nowhere {
    my ($what, $answers) = @_;
    my $usual = $answers->{ $databases[0] };
    for (@databases[ 1 .. $#databases ]) {
        is($answers->{$_}, $usual, "$what, with $setting_of{$_}");
    }
    return $usual;
}

subtest 'the background worker recovers the jobs of a dead worker' => sub {
    # Each worker dies with the next connection.
    in_each(\@databases, <<'SQL');
SET default_transaction_isolation = 'read committed';
SET default_transaction_read_only = off;
SELECT pulse.add_job('lost') \g /dev/null
SELECT id AS worker FROM pulse.register_worker('dies') \gset
SELECT pulse.attach_worker(:worker) \g /dev/null
SELECT pulse.claim(:worker) \g /dev/null
SQL
    set_databases(join ', ', @databases);
    for (@databases) {
        wait_until($node, 'SELECT count(*) = 1 FROM pulse.attempt',
            "recovered, with $setting_of{$_}", $_);
    }
    like(differs_nowhere('recovered', in_each(\@databases, $tables)),
        qr/^live\|lost\|ready\|1\|1\|/, 'they are ready again');
    set_databases('');
};

sub set_databases {
    my ($list) = @_;
    value($node, "ALTER SYSTEM SET pulse.databases = '$list'");
    $node->reload;
    return;
}

# From here on nothing else prunes than a tick.
my $expired = q{BEGIN READ WRITE; INSERT INTO pulse.attempt
    (job_id, token, attempt, ended_at, outcome)
    VALUES (1000, 1, 1, now() - interval '31 d', 'failed'); COMMIT;};
in_each(\@databases, $expired);
like(differs_nowhere('run_tick answers', in_each(\@databases, 'CALL pulse.run_tick();')),
    qr/"swept" *: *null, "pruned" *: *[12], /, 'run_tick() prunes');
in_each(\@databases, $expired);
if ($has_cron) {
    value($node, 'CREATE EXTENSION pg_cron');
    my $setups = in_each(\@databases, 'SELECT pulse.cron_setup_sql(keep => NULL);');
    value($node, join "\n", values %{$setups});
}

my $tasks = Pulse::Tasks->new(
    bad => 'echo "out of ink" >&2; exit 3',
    late => 'wait_at nowhere',
    tell => q(echo '{"progress": 0.123456, "message": "half", "result": [1, null]}' >&3));

# Adds, changes and undoes by `pulse`; what it answers, without times, and without what its worker
# does meanwhile.
sub console_answers {
    my ($database) = @_;
    my @said;
    my $say = sub {
        my $said = pulse_at($node->connstr($database), '--json', @_);
        push @said, "$said->{status} $said->{err}";
        return $said;
    };
    $say->('add', 'paper', '{"name": "Ada"}', '--queue', 'letters') for 1 .. 3;
    $say->('cancel', '--task', 'paper', '--yes');
    my $operations = json_of($say->('operations')->{out});
    push @said, map { join ' ', @{$_}{qw(action state changed skipped)} } @{$operations};
    $say->('undo', $operations->[0]{id}, '--yes');
    $say->('queues', 'limit', 'letters', '--concurrency', '2', '--rate', '5', '--per', '90s');
    $say->('queues', 'pause', 'letters');
    push @said, map { join ' ', @{$_}{qw(identifier state queue_name)} }
      @{ json_of($say->('jobs', '--task', 'paper')->{out}) };
    push @said, map { join ' ', map { $_ // '' } @{$_}{qw(name concurrency paused per)} }
      grep { $_->{name} eq 'letters' } @{ json_of($say->('queues')->{out}) };
    $say->('cancel', '--task', 'paper', '--yes');
    push @said, sort grep { /^(?:curl|greet|late|lost|tell)$/ }
      map { $_->{identifier} } @{ json_of($say->('tasks')->{out}) };
    return join "\n", @said;
}

# A worker that is curl.
sub http_answers {
    my ($api) = @_;
    my @said;
    my $say = sub {
        my $answer = $api->curl(@_, as => 'client');
        push @said, "$answer->{status} " . ($answer->{status} < 300 ? '' : $answer->{body});
        return $answer->{json};
    };
    my $id = $say->(POST => '/v1/jobs',
        body => { identifier => 'curl', payload => { name => 'Ada' } })->{id};
    my $worker = $say->(POST => '/v1/workers', body => { name => 'curl', tasks => ['curl'] })->{id};
    my ($job) = @{ $say->(POST => '/v1/claims', body => { worker_id => $worker })->{jobs}
          // [] };
    push @said, $job->{payload}{name};
    $say->(PUT => "/v1/jobs/$id/progress", token => $job->{token}, body => { fraction => 0.25 });
    push @said, $say->(GET => "/v1/jobs/$id")->{state};
    $say->(PUT => "/v1/jobs/$id/complete", token => $job->{token}, body => { result => [1] });
    $say->(DELETE => "/v1/workers/$worker");
    return join "\n", @said;
}

my (%console, %http);
my @left = @databases;
while (my @batch = splice @left, 0, 7) {
    my %worker = map { ($_ => Pulse::Worker->start($node, "worker_$_", tasks => $tasks,
                database => $_, concurrency => 2)) } @batch;
    my %api = map { ($_ => Pulse::Api->start($node, "serve_$_", dbname => $_,
                tokens => { client => 'client' })) } @batch;
    $worker{$_}->wait_for('registered') for @batch;
    # Jobs for workers that wait, of tasks that they know, and of one that they hear of.
    in_each(\@batch, <<'SQL');
SET default_transaction_read_only = off;
SELECT pulse.add_job('greet', '{"name": "Ada"}', job_key => 'k'),
  pulse.add_job('bad', max_attempts => 1), pulse.add_job('late', max_attempts => 1),
  pulse.add_job('tell', queue_name => 'serial'), pulse.add_job('tell', queue_name => 'serial')
  \g /dev/null
SELECT pulse.set_task('fresh', handler => 'app.greet(json)'), pulse.add_job('fresh') \g /dev/null
SQL
    for (@batch) {
        $console{$_} = console_answers($_);
        $http{$_} = http_answers($api{$_});
    }
    for my $database (@batch) {
        $worker{$database}->wait_for('completed', task => 'fresh');
        $worker{$database}->wait_for('completed', task => 'tell', count => 2);
        $worker{$database}->wait_for('failed', task => 'late');
        is(scalar($worker{$database}->events('reconnecting')), 0,
            "its worker loses no session, with $setting_of{$database}");
        is(scalar(grep { $_->{level} =~ /warning|error/ && $_->{event} ne 'superuser' }
                    map { $worker{$database}->events($_) } qw(claim_skipped set_up_refused
                    sweep_failed heartbeat_failed finish_failed)), 0, 'and is refused nothing');
        $_->signal('TERM') for $worker{$database}, $api{$database};
        is($worker{$database}->wait_exit, 0, 'its worker ends in order');
        $api{$database}->wait_exit;
    }
}
unlike(differs_nowhere('pulse answers', \%console), qr/^[1-9]/m, 'pulse does what it is told');
unlike(differs_nowhere('pulse serve answers', \%http), qr/^[45]/m, 'pulse serve, too');
differs_nowhere('the tables are', in_each(\@databases, $tables));

SKIP: {
    skip 'no pg_cron is installed', 2 if !$has_cron;
    my $runs = q{FROM cron.job_run_details WHERE status = 'succeeded' AND command ~ 'run_tick'};
    wait_until($node, "SELECT count(DISTINCT database) = @{[scalar @databases]} $runs",
        'each tick succeeds');
    is(value($node, q{SELECT DISTINCT return_message FROM cron.job_run_details
            WHERE status = 'failed'}), '', 'no tick of pg_cron fails');
    differs_nowhere('pruned by pg_cron',
        in_each(\@databases, 'SELECT count(*) FROM pulse.attempt WHERE job_id = 1000;'));
}

expect_healthy($node, database => $databases[0]);
done_testing();
