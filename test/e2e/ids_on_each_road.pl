# P16: files of the past become a server again, on each road that an operator takes: a restore to a
# point in time, and another one; pg_rewind and the way back; the update from 0.1.0. No id names two
# jobs, and what is lost is unknown. Other roads: dump_restore.pl, file_copy.pl,
# logical_subscriber.pl, ids_after_failover.pl.
use strict;
use warnings FATAL => 'all';

use Test::More;

use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils;
use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;

# Every id that a producer got, with what it stands for.
my %ledger;

sub give {
    my ($kind, @ids) = @_;
    for my $id (@ids) {
        fail("id $id of a $kind was given out twice") if $ledger{"$kind $id"}++;
    }
    return @ids;
}

# So many jobs, a flow and an operation; returns the ids of the jobs.
sub add_everything {
    my ($node, $task, $count) = @_;
    my @jobs = give('job', add_jobs($node, $task, $count));
    my ($flow, $member) = split /\|/, value($node,
        q{SELECT flow_id, id FROM pulse.add_flow('[{"identifier": "member"}]')});
    give('job', $member);
    give('flow', $flow);
    give('operation', value($node, q{SELECT pulse.note_operation('noted', '{}')}));
    return @jobs;
}

# What calls say of ids that nobody here knows.
sub are_lost {
    my ($node, $what, @ids) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $session = Pulse::Session->new($node);
    my @known = grep {
        my $id = $_;
        grep { $session->refusal($_) ne 'PU005' || $session->said !~ /job $id was lost in the f/ }
          "SELECT pulse.get_job($id)", "SELECT pulse.ended(ARRAY[$id])",
          "SELECT pulse.add_job_after(ARRAY[$id], 'child')";
    } @ids;
    $session->quit;
    is("@known", '', "$what: each of " . @ids . ' lost jobs is told as lost');
    return;
}

sub are_there {
    my ($node, $what, @ids) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is(value($node, 'SELECT count(*) FROM pulse.job WHERE id IN (' . join(', ', @ids) . ')'),
        scalar @ids, "$what: the jobs of before are there");
    return;
}

subtest 'restores to a point in time' => sub {
    my $main = new_server('main', settings => \%PATIENT, streaming => 1);
    $main->enable_archiving;
    $main->start;
    value($main, 'CREATE EXTENSION pg_pulse');
    $main->backup('base');
    my @kept = add_everything($main, 'kept', 50);
    value($main, q{SELECT pg_create_restore_point('here')});
    # More than the server logs ids ahead.
    my @lost = add_everything($main, 'lost', 100);
    value($main, 'SELECT pg_switch_wal()');
    $main->stop;
    for my $attempt (1 .. 2) {
        my $restored = PostgreSQL::Test::Cluster->new("attempt$attempt");
        $restored->init_from_backup($main, 'base', has_restoring => 1, standby => 0);
        $restored->append_conf('postgresql.conf', join "\n", q{recovery_target_name = 'here'},
            q{recovery_target_action = 'promote'}, q{recovery_target_timeline = '1'});
        $restored->start;
        wait_until($restored, 'SELECT NOT pg_is_in_recovery()', 'the end of the recovery');
        are_there($restored, "attempt $attempt", @kept);
        are_lost($restored, "attempt $attempt, before its first id", @lost);
        my @more = add_everything($restored, 'more', 100);
        are_lost($restored, "attempt $attempt", @lost);
        value($restored, 'SELECT pulse.sweep()');
        are_lost($restored, "attempt $attempt, after a sweep", @lost);
        expect_healthy($restored);
        # The next attempt finds the timeline of this one in the archive, and takes another.
        value($restored, 'SELECT pg_switch_wal()');
        $restored->stop;
        push @lost, @more;
    }
    $main->teardown_node;
};

subtest 'pg_rewind, and back' => sub {
    %ledger = ();
    my $first = new_server('first', settings => {
            %PATIENT, wal_log_hints => 'on', wal_keep_size => '64MB' }, streaming => 1);
    $first->start;
    value($first, 'CREATE EXTENSION pg_pulse');
    $first->backup('copy');
    my $second = PostgreSQL::Test::Cluster->new('second');
    $second->init_from_backup($first, 'copy', has_streaming => 1);
    $second->start;
    my @kept = add_everything($first, 'kept', 50);
    $first->wait_for_catchup($second);
    # What follows does not arrive.
    value($second, q{ALTER SYSTEM SET primary_conninfo = ''});
    $second->reload;
    wait_until($first, 'SELECT count(*) = 0 FROM pg_stat_replication', 'a standby that is cut off');
    my @lost = add_everything($first, 'lost', 100);
    $second->promote;
    value($second, 'ALTER SYSTEM RESET primary_conninfo');
    # Both give out ids for a while: nobody has stopped the old primary.
    my @after = add_everything($second, 'after', 100);
    push @lost, add_everything($first, 'lost', 100);
    are_lost($second, 'after the promotion', @lost);
    are_there($second, 'after the promotion', @kept, @after);

    # Before its first checkpoint the control file of the new primary names the old timeline, and
    # pg_rewind sees nothing to do.
    value($second, 'CHECKPOINT');
    $first->stop;
    my $conf = slurp_file($first->data_dir . '/postgresql.conf');
    command_ok([ 'pg_rewind', '--no-sync', '-D', $first->data_dir,
            '--source-server', $second->connstr('postgres') ], 'pg_rewind');
    # It brought the settings of the other server along.
    unlink $first->data_dir . '/postgresql.conf';
    append_to_file($first->data_dir . '/postgresql.conf', $conf);
    unlink $first->data_dir . '/postgresql.auto.conf';
    $first->enable_streaming($second);
    $first->start;
    $second->wait_for_catchup($first);
    my $session = Pulse::Session->new($first);
    is($session->refusal("SELECT pulse.get_job($lost[0])"), 'PU005',
        'the old primary is a standby, and knows what is lost');
    $session->quit;

    my @later = add_everything($second, 'later', 10);
    $second->stop;
    $first->promote;
    are_there($first, 'back again', @kept, @after, @later);
    my @now = add_everything($first, 'now', 100);
    are_lost($first, 'back again', @lost);
    are_there($first, 'back again, with its own', @kept, @after, @later, @now);
    expect_healthy($first);
    $first->stop;
};

# Two servers that know nothing of each other claim one job. A worker of the first, which now talks
# to the second, must not end the second's claim.
sub claims_apart {
    my ($node, $what, $job, $earlier) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $worker = Pulse::SqlWorker->new($node, $what);
    my $claim = $worker->must_claim;
    is($claim->{id}, $job, "$what claims the first job");
    if ($earlier) {
        isnt($claim->{token}, $earlier->{token}, 'under a token of its own');
        isnt($worker->id, $earlier->{worker}, 'and with a worker id of its own');
        is($worker->refusal("SELECT pulse.complete($job, $earlier->{token})"), 'PU001',
            'the claim of before is refused');
        is(value($node, "SELECT state FROM pulse.job WHERE id = $job"), 'running',
            'and changes nothing');
    }
    my $given = { token => $claim->{token}, worker => $worker->id };
    $worker->quit;
    return $given;
}

# Without an archive the second knows nothing of the timeline of the first, and takes the same one.
subtest 'two standbys, one after the other' => sub {
    %ledger = ();
    my $primary = new_server('lagged', settings => \%PATIENT, streaming => 1);
    $primary->start;
    value($primary, 'CREATE EXTENSION pg_pulse');
    $primary->backup('twin');
    my @kept = add_everything($primary, 'kept', 50);
    my @twins = map { PostgreSQL::Test::Cluster->new("twin$_") } 1, 2;
    for my $twin (@twins) {
        $twin->init_from_backup($primary, 'twin', has_streaming => 1);
        $twin->start;
        $primary->wait_for_catchup($twin);
    }
    $primary->stop('immediate');
    my $claim;
    for my $twin (@twins) {
        $twin->promote;
        is(value($twin, 'SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)'), '00000002',
            'each twin is on timeline 2');
        are_there($twin, 'a twin', @kept);
        add_everything($twin, 'of a twin', 100);
        $claim = claims_apart($twin, $twin->name, $kept[0], $claim);
        expect_healthy($twin);
        $twin->stop;
    }
};

# The server takes the snapshot for a crash, until somebody says that it is none.
subtest 'back to a snapshot of the disk' => sub {
    %ledger = ();
    my $node = new_server('disk', settings => \%PATIENT);
    $node->start;
    value($node, 'CREATE EXTENSION pg_pulse');
    my @kept = add_everything($node, 'kept', 50);
    Pulse::SqlWorker->new($node, 'earlier')->quit;
    $node->stop;
    my $snapshot = PostgreSQL::Test::Utils::tempdir() . '/snapshot';
    PostgreSQL::Test::RecursiveCopy::copypath($node->data_dir, $snapshot);
    $node->start;
    my @lost = add_everything($node, 'lost', 100);
    my $claim = claims_apart($node, 'before', $kept[0]);
    $node->stop('immediate');
    rename $node->data_dir, "$snapshot-of-before" or die "rename: $!\n";
    rename $snapshot, $node->data_dir or die "rename: $!\n";
    chmod 0700, $node->data_dir;
    $node->start;
    value($node, 'SELECT pulse.adopt_installation()');
    are_there($node, 'the snapshot', @kept);
    are_lost($node, 'the snapshot', @lost);
    add_everything($node, 'more', 100);
    claims_apart($node, 'after', $kept[0], $claim);
    expect_healthy($node);
    $node->stop;
};

subtest 'the update from 0.1.0' => sub {
    %ledger = ();
    my $node = new_server('updated', settings => \%PATIENT);
    $node->start;
    value($node, q{CREATE EXTENSION pg_pulse VERSION '0.1.0'});
    my @old = give('job', map { add_job($node, 'old') } 1 .. 40);
    value($node, 'ALTER EXTENSION pg_pulse UPDATE');
    my ($new) = add_everything($node, 'new', 10);
    is($new, $old[-1] + 1, 'ids go on where they were');
    is(value($node, 'SELECT count(*) FROM pulse_internal.id_gaps'), 0, 'without a gap');
    my $session = Pulse::Session->new($node);
    is($session->refusal('SELECT pulse.set_shard(1)'), 'PU003', 'a shard comes too late');
    is($session->query('SELECT shard FROM pulse.overview'), 0, 'it has shard 0');
    $session->quit;
    expect_healthy($node);
};

done_testing();
