# What the counters of tasks and queues cost: one session claims and completes batches of jobs, with
# pulse.enable_counters on and off by turns. The figure is the time that the session's process had a
# processor, which other load on the machine changes little.
package Counters;

use strict;
use warnings;
use Getopt::Long qw(GetOptionsFromArray);

use Bench::Measure;
use Bench::Pulse;
use Bench::Server;

use constant { SERVER => 'bench-counters', MAX_RATIO => 1.02 };
my ($at, $option);

sub read_options {
    my @arguments = @_;
    my %option = (pairs => 20, jobs => 20_000, batch => 100);
    GetOptionsFromArray(\@arguments, \%option, qw(pairs=i jobs=i batch=i)) or return;
    return if @arguments || grep { $_ < 1 } values %option;
    return \%option;
}

# Each batch is a transaction, as a worker makes them: at its commit it is counted.
my $drain = q{
CREATE PROCEDURE drain(worker bigint, batch int)
  LANGUAGE plpgsql AS $$
DECLARE
  ids bigint[];
  tokens bigint[];
BEGIN
  LOOP
    SELECT array_agg(c.id), array_agg(c.token) INTO ids, tokens
      FROM pulse.claim(worker, batch) AS c;
    EXIT WHEN ids IS NULL;
    PERFORM count(*) FROM pulse.complete_many(ids, tokens);
    COMMIT;
  END LOOP;
END $$};

# Seconds of processor time of one drain.
sub drained {
    my ($setting) = @_;
    Bench::Pulse::fill('postgres', $option->{jobs});
    my $statement = Bench::Server::command(qq{psql -XqAt -v ON_ERROR_STOP=1 <<'SQL'
SET pulse.enable_counters = $setting;
SET plan_cache_mode = force_generic_plan;
SELECT id AS worker FROM pulse.register_worker('drain') \\gset
SELECT pg_read_file('/proc/self/schedstat') AS before \\gset
CALL drain(:worker, $option->{batch});
SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint
       - split_part(:'before', ' ', 1)::bigint;
SELECT pulse.deregister_worker(:worker) \\g /dev/null
SQL});
    return $statement / 1e9;
}

sub measure {
    Bench::Pulse::create($at, 'postgres');
    Bench::Server::sql('postgres', $drain);
    drained('on');
    my (@on, @off, @ratio);
    for my $pair (1 .. $option->{pairs}) {
        my %seconds;
        $seconds{$_} = drained($_) for $pair % 2 ? qw(on off) : qw(off on);
        push @on, $seconds{on};
        push @off, $seconds{off};
        push @ratio, $seconds{on} / $seconds{off};
        printf "%2d  on %.3f s  off %.3f s  %.3f\n", $pair, @seconds{qw(on off)}, $ratio[-1];
    }
    my $ratio = Bench::Measure::median(@ratio);
    printf "%d jobs in batches of %d, %d pairs, us of the server's processor per job:"
      . " on %.2f, off %.2f, median ratio %.4f (at most %.2f)\n",
      @$option{qw(jobs batch pairs)}, map({ 1e6 * Bench::Measure::median(@$_) / $option->{jobs} }
        \@on, \@off), $ratio, MAX_RATIO;
    return $ratio > MAX_RATIO ? 2 : 1;
}

sub run {
    ($at, $option) = @_;
    return Bench::Server::run_with($at, SERVER, ['autovacuum=off'], \&measure) - 1;
}

1;
