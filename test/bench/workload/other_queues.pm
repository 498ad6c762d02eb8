# The drain of two queues that are unlike ours, for a sense of place: pg-boss, which has jobs as we
# do, and PgQ, which hands batches of events to one consumer and knows no single job's end.
package Bench::Workload::OtherQueues;

use strict;
use warnings;

use Bench::Draining;
use Bench::Measure;
use Bench::PgBoss;
use Bench::Pulse;
use Bench::Server;

# Batches of pg-boss are what was best for it; see the README.
use constant { JOBS => 100_000, BATCH => 500, PGBOSS_BATCH => 5000, PGBOSS_PROCESSES => 2 };

sub create_pgq {
    die "bench: PgQ is missing; on Debian: apt-get install postgresql-15-pgq3\n"
      if !Bench::Server::sql('postgres',
        q{SELECT count(*) FROM pg_available_extensions WHERE name = 'pgq'});
    Bench::Server::command('createdb pgq');
    Bench::Server::sql('pgq', $_) for 'CREATE EXTENSION pgq', q{SELECT pgq.create_queue('no_op')},
      q{SELECT pgq.set_queue_config('no_op', 'ticker_max_lag', '0')},
      q{SELECT pgq.register_consumer('no_op', 'bench')};
    return;
}

# A tick after each batch, as its ticker would make it: batches are what lies between ticks.
sub fill_pgq {
    my ($at) = @_;
    open my $psql, '|-', "psql -XqAt -v ON_ERROR_STOP=1 -d pgq >>'$at->{log}'"
      or die "bench: psql: $!\n";
    for (1 .. JOBS / BATCH) {
        print {$psql} q{SELECT count(pgq.insert_event('no_op', 'no_op', json_build_object('id', i)
            ::text)) FROM generate_series(1, } . BATCH . qq{) AS i;\nSELECT pgq.ticker('no_op');\n};
    }
    close $psql or die "bench: PgQ's events were refused\n";
    return;
}

my %side = (
    pulse => {
        database => 'postgres', create => sub { Bench::Pulse::create($_[0], 'postgres') },
        fill => sub { Bench::Pulse::fill('postgres', JOBS) },
        command => sub { Bench::Pulse::drain_command($_[0], 'postgres', batch => BATCH) },
        left => Bench::Pulse::LEFT,
    },
    pgboss => {
        database => 'pgboss', create => \&Bench::PgBoss::create,
        fill => sub { Bench::PgBoss::fill($_[0], JOBS) },
        command => sub {
            Bench::PgBoss::command($_[0], PGBOSS_PROCESSES, 'drain', PGBOSS_BATCH);
        },
        left => Bench::PgBoss::LEFT,
    },
    pgq => {
        database => 'pgq', create => \&create_pgq, fill => \&fill_pgq,
        command => sub { "PGDATABASE=pgq '$_[0]{build}/client/bench-pgq'" },
        left => q{SELECT pending_events FROM pgq.get_consumer_info('no_op', 'bench')},
    },
);
my @names = qw(pulse pgboss pgq);

sub drain {
    my ($at, $name) = @_;
    my ($database, $left, $command) = (@{$side{$name}}{qw(database left)},
                                       $side{$name}{command}->($at));
    Bench::Server::sql($database, 'VACUUM');
    Bench::Server::sql($database, 'CHECKPOINT');
    my $startup = Bench::Measure::timed($at, $database, $command =~ s{seq \d+}{seq 1}r);
    $side{$name}{fill}->($at);
    my $run = Bench::Measure::timed($at, $database, $command);
    my $count = Bench::Server::sql($database, $left);
    die "bench: $name left $count jobs, see $at->{log}\n" if $count != 0;
    return { jobs => JOBS, seconds => $run->{seconds}, startup => $startup->{seconds},
             load => $run->{load}, cost => Bench::Measure::per_job($run, JOBS) };
}

sub measure {
    my ($at) = @_;
    $side{$_}{create}->($at) for @names;
    my %runs;
    for my $repeat (0 .. $at->{repeats}) {
        for my $name (@names) {
            my $run = drain($at, $name);
            next if $repeat == 0;
            push @{$runs{$name}}, $run;
            printf "%d %-8s %7.2f s, start and stop %.2f s (load %s)\n", $repeat, $name,
              @{$run}{qw(seconds startup load)};
        }
    }
    Bench::Draining::rate(@$_) for values %runs;
    return \%runs;
}

return {
    title => 'drain of 100,000 jobs, against pg-boss and PgQ',
    is_long => 1,
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub {
        return map { { name => "other_queues.$_->[0]", what => $_->[1], ours => 'pulse',
                       against => $_->[0] } } [pgboss => 'batches of 500; theirs of 5,000'],
          [pgq => 'batches of 500'];
    },
    labels => sub { return (pulse => 'ours', pgboss => 'pg-boss', pgq => 'PgQ') },
    measure => \&measure,
};
