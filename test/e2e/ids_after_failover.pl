# P16: standbys that lag are promoted, one after another. Every id that a producer got names one job
# for ever: what is lost is unknown to each call, and whatever comes later has another id.
use strict;
use warnings FATAL => 'all';

use List::Util qw(first);
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Session;

my $failovers = $ENV{PULSE_FAILOVERS} // 2;
my $seed = $ENV{PULSE_SEED} // 1 + int rand 1_000_000;
note "PULSE_SEED=$seed";
srand $seed;

# A transaction that was open while so many other ids were taken may have lost an id below the gap.
use constant LONG => 32;
use constant PRODUCERS => 8;

my $primary = start_server('server0', streaming => 1, settings => {
    %PATIENT, 'pulse.keep_completed' => '0' });

# The ledger. Of each id of a job what its producer meant by it, whether it was completed, and how
# many others were taken before its transaction was committed.
my (%ledger, %flows, %operations);
my $taken = 0;

sub give {
    my ($given, $id, $what) = @_;
    fail("id $id of $what was given out twice") if $given->{$id};
    $taken++ if $given == \%ledger;
    return $given->{$id} = { what => $what, taken => $taken, open_across => 0 };
}

# Producers, some of which keep a transaction open while others take many ids.
package Producer {
    sub new {
        my ($class, $node) = @_;
        return bless { session => Pulse::Session->new($node) }, $class;
    }

    sub add {
        my ($self, $steps) = @_;
        my $what = 'job ' . ($taken + 1);
        $self->{session}->query('BEGIN');
        my $id = $self->{session}->query(
            "SELECT id FROM pulse.add_job('ids', to_json('$what'::text))");
        $self->{job} = main::give(\%ledger, $id, $what);
        $self->{left} = $steps;
        return;
    }

    sub commit {
        my ($self) = @_;
        my $job = delete $self->{job} or return;
        $self->{session}->query('COMMIT');
        $job->{open_across} = $taken - $job->{taken};
        return;
    }

    sub step {
        my ($self) = @_;
        return $self->add(rand() < 0.2 ? 12 : int rand 3) if !$self->{job};
        return $self->commit if $self->{left}-- <= 0;
        return;
    }
}

sub work {
    my ($node, $steps, @producers) = @_;
    for my $step (1 .. $steps) {
        $producers[ rand @producers ]->step;
        next if $step % 10;
        my $session = $producers[0]{session};
        $producers[0]->commit;
        my ($flow, $member) = split /\|/, $session->query(
            q{SELECT flow_id, id FROM pulse.add_flow('[{"identifier": "member"}]')});
        give(\%flows, $flow, "flow $taken");
        give(\%ledger, $member, "member of flow $flow");
        give(\%operations, $session->query(q{SELECT pulse.note_operation('noted', '{}')}),
            "operation $taken");
        # As a worker would: the job leaves no row.
        my $id = $session->query(q{SELECT min(id) FROM pulse.job WHERE identifier = 'ids'});
        next if !$id;
        $session->query("SELECT pulse.complete_jobs(ARRAY[$id])");
        $ledger{$id}{is_completed} = 1 if $ledger{$id};
    }
    return;
}

# A standby of which the test decides when it receives nothing more.
sub standby_of {
    my ($node, $name) = @_;
    $node->backup($name);
    my $standby = PostgreSQL::Test::Cluster->new($name);
    $standby->init_from_backup($node, $name, has_streaming => 1);
    $standby->start;
    $node->wait_for_catchup($standby);
    return $standby;
}

# The first add of a timeline, in each of the ways in which it must hold nobody up.
my @first_adds = (
    [ 'stays open' => 'BEGIN', undef, 'COMMIT' ],
    [ 'is rolled back' => 'BEGIN', 'ROLLBACK', undef ],
    [ 'is prepared' => 'BEGIN', q{PREPARE TRANSACTION 'first'}, q{COMMIT PREPARED 'first'} ],
    [ 'is serializable' => 'BEGIN ISOLATION LEVEL SERIALIZABLE', undef, 'COMMIT' ],
);

# Sixteen sessions add and claim at once; a wait for an open transaction would end in an error. On a
# busy machine a claim may say that a sweep is due.
sub add_and_claim_beside {
    my ($node) = @_;
    my @sessions = map { Pulse::Session->new($node) } 1 .. 16;
    $_->query(q{SET lock_timeout = '20s'; SET client_min_messages = warning}) for @sessions;
    $_->ask(q{
        SELECT id FROM pulse.add_jobs(array_fill('(beside,,,,,,,)'::pulse.job_spec, '{5}'));
        SELECT 'claimed' FROM pulse.register_worker('beside') AS w,
            pulse.claim(w.id, 5, '{beside}')})
      for @sessions;
    my @said = map { split /\n/, $_->answer } @sessions;
    is(join('', map { $_->said } @sessions), '', 'nor sixteen sessions that add and claim');
    is(scalar(grep { $_ eq 'claimed' } @said), 80, 'each of which gets its jobs');
    $_->quit for @sessions;
    return grep { /^\d+$/ } @said;
}

sub first_add {
    my ($node, $how, $lost) = @_;
    my ($title, $begin, $end, $later) = @{$how};
    my ($first, $second) = map { Pulse::Session->new($node) } 1, 2;
    $first->query($begin);
    my $id = $first->query(q{SELECT id FROM pulse.add_job('first')});
    ok(!$ledger{$id}, "a first add that $title takes a new id");
    $first->query($end) if $end;
    $second->query(q{SET lock_timeout = '20s'});
    my $next = $second->query(q{SELECT id FROM pulse.add_job('second')});
    is($next, $id + 1, 'and holds nobody up');
    is($second->refusal("SELECT pulse.ended(ARRAY[$lost])"), 'PU005',
        'a lost job is told as lost from the leap on');
    like($second->said, qr/job $lost was lost in the failover of \d/, 'and when');
    my @others = add_and_claim_beside($node);
    $second->query('SELECT pulse.sweep()');
    is(value($node, 'SELECT count(*) FROM pulse_internal.pending_gap'), 0,
        'nor a sweep that writes the gap down');
    $first->query($later) if $later;
    give(\%ledger, $_, 'first') for $next, @others, $end && $end eq 'ROLLBACK' ? () : $id;
    $_->quit for $first, $second;
    return;
}

sub has_row {
    my ($node) = @_;
    return map { $_ => 1 } split /\n/, value($node,
        'SELECT id FROM pulse.job UNION SELECT id FROM pulse.finished_job
         UNION SELECT job_id FROM pulse.attempt UNION SELECT job_id FROM pulse.flow_job');
}

# Whether the calls that take the id of a job refuse each of these; wait_for_end takes it itself.
my $refusals = q{
    CREATE FUNCTION pg_temp.refusal(statement text) RETURNS text LANGUAGE plpgsql AS $$
    BEGIN
        EXECUTE statement;
        RETURN 'accepted: ' || statement;
    EXCEPTION WHEN SQLSTATE 'PU005' THEN
        RETURN CASE WHEN SQLERRM ~ '^job \d+ was lost in the failover of \d' THEN ''
                 ELSE SQLERRM END;
    END $$;
    SELECT r FROM unnest(ARRAY[%s]::bigint[]) AS id, unnest(ARRAY['SELECT pulse.get_job(%%s)',
        'SELECT pulse.cancel_job(%%s)', 'SELECT pulse.retry_job(%%s)',
        'SELECT pulse.ended(ARRAY[%%s])', 'SELECT pulse_internal.awaited_ids(ARRAY[%%s])',
        'SELECT pulse.explain_job(%%s)', 'SELECT pulse.add_job_after(ARRAY[%%s], ''child'')',
        'SELECT pulse.start_operation(''cancel'', ''{"ids": [%%s]}'')']) AS call,
        pg_temp.refusal(format(call, id)) AS r WHERE r <> ''};

my (%gap, %counts);

# Before the first id of its timeline, and after. The last failover asks for all earlier ones too.
# Returns a lost id.
sub check_lost {
    my ($node, $from, $when, $is_last) = @_;
    my %has_row = has_row($node);
    my @gone = sort { $a <=> $b } grep { !$has_row{$_} } keys %ledger;
    my @in_gap = grep { my $id = $_;
        $id >= $from || first { $_->[0] <= $id && $id <= $_->[1] } values %gap } @gone;
    my @asked = grep { $is_last || $_ >= $from } @in_gap;
    is(value($node, sprintf $refusals, join ',', @asked), '',
        "$when every call refuses each of " . @asked . ' ids without a row');
    my ($status, undef, $said) =
      $node->psql('postgres', "CALL pulse.wait_for_end(ARRAY[$in_gap[-1]], '0')");
    like($said, qr/job $in_gap[-1] was lost in the failover of \d/, 'and so does wait_for_end');
    my %in_gap = map { $_ => 1 } @in_gap;
    my @below = grep { !$in_gap{$_} && !$ledger{$_}{is_completed} } @gone;
    is(scalar(grep { $ledger{$_}{open_across} < LONG } @below), 0,
        'a lost id below the gaps was taken by a transaction that stayed open across 32 others: '
          . @below);
    @counts{qw(in_gap below)} = (scalar @in_gap, scalar @below);
    return $in_gap[-1];
}

for my $round (1 .. $failovers) {
    my $standby = standby_of($primary, "server$round");
    my ($long, @producers) = map { Producer->new($primary) } 0 .. PRODUCERS;
    $long->add(0);
    work($primary, 250 + int rand 50, @producers);
    # What follows arrives for a moment more, or not at all.
    value($standby, q{ALTER SYSTEM SET primary_conninfo = ''});
    $standby->reload;
    work($primary, 125 + int rand 50, @producers);
    wait_until($standby, 'SELECT count(*) = 0 FROM pg_stat_wal_receiver', 'it receives nothing');
    work($primary, 125 + int rand 50, @producers);
    $_->commit for $long, @producers;
    $primary->stop('immediate');
    $_->{session}->quit for $long, @producers;
    $standby->promote;
    value($standby, 'ALTER SYSTEM RESET primary_conninfo');

    my $from = value($standby, 'SELECT pulse_internal.first_in_doubt()');
    my $lost = check_lost($standby, $from, 'before the first id', $round == $failovers);
    first_add($standby, $first_adds[ $round % @first_adds ], $lost);
    $gap{$round} = [ split /\|/, value($standby, 'SELECT from_id, to_id FROM pulse.id_gap
        ORDER BY to_id DESC LIMIT 1') ];
    cmp_ok($counts{below}, '>=', $round, 'below it, what a long transaction took is lost too');
    is($gap{$round}[0], $from, 'the gap begins where the lag may have begun');
    cmp_ok($gap{$round}[1] - $from, '>', 2**31, 'and ends far above');
    check_lost($standby, $from, 'after it', $round == $failovers);
    note "failover $round: lost in the gaps $counts{in_gap}, below them $counts{below}";
    $primary = $standby;
}

# A later failover counts no id of an earlier timeline as lost that it has.
my @producers = map { Producer->new($primary) } 1 .. PRODUCERS;
work($primary, 100, @producers);
$_->commit for @producers;
$_->{session}->quit for @producers;
my %names;
for my $row (split /\n/, value($primary, q{SELECT id, payload #>> '{}' FROM pulse.job
    WHERE identifier = 'ids'})) {
    my ($id, $what) = split /\|/, $row;
    $names{$id} = $what if $ledger{$id}{what} ne $what;
}
is_deeply(\%names, {}, 'every id of the ledger names the job that its producer was told');
note 'ids of jobs ' . keys(%ledger) . ', of flows ' . keys(%flows) . ', of operations '
  . keys %operations;
expect_healthy($primary);
done_testing();
