# pg_cron alone, calling run_tick() each minute: no worker sweeps, nothing of ours runs by itself,
# and pg_cron lives in another database. Both deaths, of a session and by silence, are noticed in
# time. It takes as many minutes as that takes.
use strict;
use warnings FATAL => 'all';

use Test::More;

# Before the framework reads it: a minute is longer than anything else here.
BEGIN { $ENV{PG_TEST_TIMEOUT_DEFAULT} //= 200 }
use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::SqlWorker;

plan skip_all => 'no pg_cron is installed' if !-f server_folder('pkglibdir') . '/pg_cron.so';
my $node = start_server('main',
    settings => {
        shared_preload_libraries => 'pg_cron',
        'cron.use_background_workers' => 'on',
        'pulse.heartbeat_interval' => '200ms',
        'pulse.sweep_interval' => '36s',
        'pulse.sweep_threshold' => '55s',
        'pulse.disconnect_grace' => '0',
    });
# The documented bound: (55 s / (1.25 x 36 s), rounded up, + 1) minutes.
use constant MOST_TICKS => 3;

value($node, 'CREATE EXTENSION pg_cron');
value($node, 'CREATE DATABASE shop');
value($node, 'CREATE EXTENSION pg_pulse', 'shop');
value($node, 'CREATE ROLE ticker LOGIN');
value($node, 'GRANT USAGE ON SCHEMA pulse TO ticker', 'shop');
value($node, 'GRANT EXECUTE ON FUNCTION pulse.tick TO ticker', 'shop');
value($node, 'GRANT EXECUTE ON PROCEDURE pulse.run_tick TO ticker', 'shop');

my $setup = value($node, q{SELECT pulse.cron_setup_sql(username => 'ticker')}, 'shop');
value($node, $setup);
value($node, $setup);
is( value($node, 'SELECT jobname, database, username FROM cron.job WHERE jobname ~ \'tick\''),
    'pg_pulse tick shop|shop|ticker', 'set up twice, it is there once');

# Each holds a job when it dies; the second was never attached, so only its silence tells.
my %job = map { ($_ => add_job($node, $_, undef, 'shop')) } qw(attached silent);
my $attached = Pulse::SqlWorker->new($node, 'attached', database => 'shop');
my $claim = $attached->must_claim;
my $silent = value($node, q{SELECT id FROM pulse.register_worker('silent')}, 'shop');
is(value($node, "SELECT id FROM pulse.claim($silent)", 'shop'), $job{silent}, 'another claims');
# Its last beat was a while before the first tick, so that the second is enough.
value($node, "SET pulse.clock_offset = '-20s'; SELECT pulse.heartbeat($silent)", 'shop');
$attached->kill;

my $ticks = q{FROM cron.job_run_details WHERE command = 'CALL pulse.run_tick()'};
sub wait_for_end {
    my ($name) = @_;
    wait_until($node,
        "SELECT count(*) = 1 FROM pulse.attempt WHERE job_id = $job{$name} AND outcome = 'lost'",
        "$name is recovered", 'shop');
    return value($node, "SELECT count(*) $ticks AND end_time IS NOT NULL");
}

cmp_ok(wait_for_end('attached'), '<=', 2, 'the end of a session is noticed by the next tick');
cmp_ok(wait_for_end('silent'), '<=', MOST_TICKS, 'silence within the documented bound');
is( value($node, q{SELECT string_agg(recovered, ' ' ORDER BY id) FROM pulse.job}, 'shop'),
    'session silence', 'and each is told for what it was');
wait_until($node, "SELECT bool_and(status IN ('succeeded', 'running', 'starting')) $ticks",
    'no tick fails');
is(value($node, "SELECT count(*) $ticks AND username <> 'ticker'"), 0,
    'a role that may do nothing else is enough');
my $purge = value($node, q{SELECT command FROM cron.job WHERE jobname ~ 'purge'});
value($node, q{UPDATE cron.job_run_details SET end_time = now() - interval '8 days'});
value($node, $purge);
is(value($node, "SELECT count(*) $ticks AND end_time < now() - interval '7 days'"), 0,
    'records of runs are deleted when they are old');

expect_healthy($node, database => 'shop');
done_testing();
