# What a job costs over nodes of Citus: processor time of all servers for an add and for a drain, by
# a server without Citus, by the node of the key, and by the coordinator. The servers share one
# machine, so each is measured alone, and what the servers spend idle is taken off. Citus's own part
# of an add through the coordinator: a function that it hands over, and that calls pulse.add_job(),
# or does nothing; and one row that is written by a kept plan.
#
# make check-citus CITUS=test/bench/citus.pl     PULSE_ROUNDS: how often (5); medians are shown
# PULSE_CASES=drain: only cases of which the names begin so
use strict;
use warnings FATAL => 'all';

use List::Util qw(sum0);
use Test::More;
use Time::HiRes qw(time sleep);

use PostgreSQL::Test::Utils qw(run_command slurp_file append_to_file);
use Pulse::Citus;
use Pulse::Process;
use Pulse::Server qw(new_server value);
use Pulse::Worker;

use constant { ADDS => 2_000, BATCHES => 40, BATCH => 100, DRAINED => 5_000, TICK => 0.01 };
my $rounds = $ENV{PULSE_ROUNDS} || 5;

my $cluster = Pulse::Citus->start;

sub start_plain {
    my ($name) = @_;
    my $plain = new_server($name, streaming => 1, settings => { extension_destdir => '',
        max_connections => 100, max_prepared_transactions => 100,
        listen_addresses => '127.0.0.1' });
    $plain->start;
    value($plain, q{CREATE EXTENSION pg_pulse; CREATE ROLE app LOGIN;
        SELECT pulse.grant_producer('app')});
    return $plain;
}

my ($plain, $other) = map { start_plain($_) } qw(plain other);
my ($coordinator, $first, $second) = $cluster->nodes;
my @keys = $cluster->keys;
my @servers = ($plain, $other, $cluster->nodes);
for my $node (@servers) {
    value($node, q{SET citus.enable_ddl_propagation = off;
        CREATE FUNCTION public.nothing(payload json) RETURNS void LANGUAGE plpgsql
          AS $$ BEGIN END $$;
        SELECT pulse.set_task('drained', handler => 'public.nothing(json)')});
}

value($coordinator, q{
    CREATE FUNCTION handed_over(tenant text, task text) RETURNS bigint LANGUAGE plpgsql STRICT AS $$
    BEGIN RETURN (pulse.add_job(task)).id; END $$;
    SELECT create_distributed_function('handed_over(text, text)', 'tenant',
      colocate_with => 'orders', force_delegation => true);
    CREATE FUNCTION handed_over_nothing(tenant text, task text) RETURNS bigint
      LANGUAGE plpgsql STRICT AS $$ BEGIN RETURN 0; END $$;
    SELECT create_distributed_function('handed_over_nothing(text, text)', 'tenant',
      colocate_with => 'orders', force_delegation => true);
    CREATE FUNCTION public.hand_over(function text, tenant text) RETURNS bigint
      LANGUAGE plpgsql AS $$
    DECLARE id bigint;
    BEGIN
      EXECUTE format('SELECT * FROM %I(%L, $1)', function, tenant) INTO id USING 'x';
      RETURN id;
    END $$;
    CREATE FUNCTION public.write_row(tenant text) RETURNS void LANGUAGE plpgsql
      SET plan_cache_mode = force_generic_plan AS $$
    BEGIN INSERT INTO orders VALUES (tenant, 1, 'x'); END $$});

# Seconds of processor that a server has spent, with the children that are gone.
sub spent {
    my ($node) = @_;
    return TICK * sum0 map {
        my $stat = eval { slurp_file('/proc/' . $_->pid . '/stat') } // '';
        my @field = split / /, $stat =~ s/^.*\) //sr;
        @field ? sum0(@field[ 11, 12 ]) + ($_->pid == $node->{_pid} ? sum0(@field[ 13, 14 ]) : 0)
          : 0;
    } Pulse::Process->family($node->{_pid});
}

sub measure {
    my ($act) = @_;
    my $start = time;
    my @before = map { spent($_) } @servers;
    $act->();
    my @after = map { spent($_) } @servers;
    return (sum0(@after) - sum0(@before), time - $start);
}

my ($idle, $over) = measure(sub { sleep 10 });
$idle /= $over;

# Of one job: milliseconds of all servers without what they spend idle.
sub cost {
    my ($jobs, $act) = @_;
    my ($seconds, $elapsed) = measure($act);
    return 1000 * ($seconds - $idle * $elapsed) / $jobs;
}

sub pgbench {
    my ($node, $statement, $count) = @_;
    my $script = PostgreSQL::Test::Utils::tempdir('pgbench') . '/script';
    append_to_file($script, "$statement;\n");
    $node->command_ok([ 'pgbench', '-n', '-h', $node->host, '-U', 'app', '-c', 1, '-t', $count,
        '-f', $script, 'postgres' ], $statement =~ s/array_fill.*/…/r);
    return;
}

sub adds {
    my ($node, $call) = @_;
    return cost(ADDS, sub { pgbench($node, "SELECT $call", ADDS) });
}

sub batches {
    my ($node, $call) = @_;
    my $specs = "array_fill('(x,,,,,,,)'::pulse.job_spec, '{@{[BATCH]}}')";
    return cost(BATCHES * BATCH,
        sub { pgbench($node, "SELECT count(*) FROM $call" =~ s/SPECS/$specs/r, BATCHES) });
}

my $worker = 0;

sub drains {
    my (@nodes) = @_;
    for my $node (@nodes) {
        value($node, "SELECT count(*) FROM pulse.add_jobs(
            array_fill('(drained,,,,,,,)'::pulse.job_spec, '{@{[DRAINED / @nodes]}}'))");
    }
    return cost(DRAINED, sub {
        my @workers = map {
            Pulse::Worker->start($_, 'bench' . $worker++, concurrency => 4, level => 'error',
                options => ['--once'])
        } @nodes;
        $_->wait_exit for @workers;
    });
}

my $by_key = "pulse_citus.add_job('$keys[1]', 'x')";
my @cases = (
    [ 'add, a server without Citus' => sub { adds($plain, q{pulse.add_job('x')}) } ],
    [ 'add, the node, pulse' => sub { adds($first, q{pulse.add_job('x')}) } ],
    [ 'add, the node, pulse_citus' => sub { adds($first, $by_key) } ],
    [ 'add, the coordinator, Citus alone' =>
          sub { adds($coordinator, "public.hand_over('handed_over', '$keys[1]')") } ],
    [ 'add, the coordinator, nothing' =>
          sub { adds($coordinator, "public.hand_over('handed_over_nothing', '$keys[1]')") } ],
    [ 'add, the coordinator, a row' =>
          sub { adds($coordinator, "public.write_row('$keys[1]')") } ],
    [ 'add, the coordinator' => sub { adds($coordinator, $by_key) } ],
    [ 'of 100, a server without Citus' => sub { batches($plain, 'pulse.add_jobs(SPECS)') } ],
    [ 'of 100, the node' =>
          sub { batches($first, "pulse_citus.add_jobs('$keys[1]', SPECS)") } ],
    [ 'of 100, the coordinator' =>
          sub { batches($coordinator, "pulse_citus.add_jobs('$keys[1]', SPECS)") } ],
    [ 'drain, a server without Citus' => sub { drains($plain) } ],
    [ 'drain, two servers without Citus' => sub { drains($plain, $other) } ],
    [ 'drain, one node' => sub { drains($first) } ],
    [ 'drain, two nodes' => sub { drains($first, $second) } ],
    [ 'drain, the coordinator' => sub { drains($coordinator) } ]);
@cases = grep { index($_->[0], $ENV{PULSE_CASES} // '') == 0 } @cases;
my %figures;
for my $round (1 .. $rounds) {
    for my $case (@cases) {
        push @{ $figures{ $case->[0] } }, $case->[1]->();
        value($_, q{DELETE FROM pulse.job WHERE identifier = 'x'}) for @servers;
    }
}

sub median { my @sorted = sort { $a <=> $b } @_; return $sorted[ $#sorted / 2 ] }

# Other programs come and go, so a round compares with its own server without Citus.
sub multiple {
    my ($figures, $base) = @_;
    return median(map { $figures->[$_] / $base->[$_] } 0 .. $#$figures);
}

note sprintf 'idle %.1f ms a second; load %s', 1000 * $idle,
  slurp_file('/proc/loadavg') =~ s/ .*//sr;
for my $name (map { $_->[0] } @cases) {
    my ($kind) = split /,/, $name;
    my $figures = $figures{$name};
    note sprintf '%-34s %.3f ms a job, %.2f of a server without Citus (%s)', $name,
      median(@$figures), multiple($figures, $figures{"$kind, a server without Citus"}),
      join ' ', map { sprintf '%.3f', $_ } @$figures;
}
ok(1, 'measured');
done_testing();
