# Jobs that wait for jobs: one after a hundred thousand, with what it costs to add the last one; a
# hundred thousand after one, against as many of named queues; and a chain, a link at a time.
package Bench::Workload::Parents;

use strict;
use warnings;
use Time::HiRes qw(time);

use Bench::Load;
use Bench::Pulse;
use Bench::Server;

use constant { JOBS => 100_000, QUEUES => 20_000, LINKS => 2000, BATCH => 500 };
use constant DATABASE => 'postgres';

sub drain {
    my ($at, $jobs, $batch, %option) = @_;
    return Bench::Load::fill_and_drain($at, DATABASE, jobs => $jobs, batch => $batch, %option);
}

# The last job is added after all others are committed, and the time of that belongs to the drain.
sub fan_in {
    my ($at) = @_;
    Bench::Server::sql(DATABASE, 'VACUUM ' . Bench::Pulse::TABLE);
    Bench::Pulse::fill(DATABASE, JOBS);
    Bench::Server::sql(DATABASE, 'CHECKPOINT');
    my $begun = time;
    Bench::Server::sql(DATABASE, q{SELECT count(pulse.add_job_after(
        ARRAY(SELECT id FROM pulse.job), 'no_op'))});
    my $added = time - $begun;
    my $run = Bench::Load::drain($at, DATABASE, jobs => JOBS + 1, batch => BATCH);
    return { %$run, rate => $run->{jobs} / ($run->{seconds} + $added) };
}

sub fan_out {
    my ($at) = @_;
    return drain($at, JOBS + 1, BATCH, fill => sprintf q{
        WITH first AS (SELECT id FROM pulse.add_job('no_op'))
        SELECT count(pulse.add_job_after(ARRAY[f.id], 'no_op'))
          FROM first AS f, generate_series(1, %d)}, JOBS);
}

sub chain {
    my ($at) = @_;
    return drain($at, LINKS, 1, workers => 1, fill => sprintf q{
        SELECT count(*) FROM pulse.add_flow((
          SELECT json_agg(json_build_object('key', n::text, 'identifier', 'no_op', 'after',
                   CASE WHEN n > 1 THEN json_build_array((n - 1)::text) END))
            FROM generate_series(1, %d) AS n))}, LINKS);
}

my %side = (
    plain => sub { return drain($_[0], JOBS, BATCH) },
    queued => sub {
        return drain($_[0], JOBS, BATCH,
            field => { queue => sprintf q{'queue-' || i %% %d}, QUEUES });
    },
    fan_in => \&fan_in,
    fan_out => \&fan_out,
    chain => \&chain,
);

sub measure {
    my ($at) = @_;
    Bench::Pulse::create($at, DATABASE);
    my %runs;
    for my $repeat (0 .. $at->{repeats}) {
        for my $name (qw(plain fan_in queued fan_out chain)) {
            my $run = $side{$name}->($at);
            next if $repeat == 0;
            push @{$runs{$name}}, $run;
            printf "%d %-18s %9.0f jobs/s (load %s)\n", $repeat, $name, @{$run}{qw(rate load)};
        }
    }
    return \%runs;
}

return {
    title => 'drain of 100,000 jobs of which some wait for others, batches of 500',
    is_long => 1,
    figure => 'rate',
    unit => 'jobs/s',
    rows => sub {
        return ({ name => 'parents.fan_in', what => 'one after 100,000, adding it included',
                  ours => 'fan_in', against => 'plain' },
                { name => 'parents.fan_out', what => '100,000 after one', ours => 'fan_out',
                  against => 'queued' },
                { name => 'parents.chain', what => 'links of a chain, one worker',
                  ours => 'chain' });
    },
    labels => sub {
        return (plain => 'no parent', queued => '20,000 queues', fan_in => 'one after many',
                fan_out => 'many after one', chain => 'a chain');
    },
    measure => \&measure,
};
