# What `pulse --json` prints is what docs/console.md says: each field of each command, with its
# type, in rows that are there. Programs read these.
use strict;
use warnings FATAL => 'all';

use B ();
use JSON::PP ();
use Test::More;

use PostgreSQL::Test::Utils;
use Pulse::Console;
use Pulse::Program;
use Pulse::Server;
use Pulse::Session;

my $node = start_server('main', settings => { %PATIENT, 'pulse.keep_completed' => '1 h' });

# "COMMAND" => { shape, fields: { name => type } }, as the page has it: `name` type, … where a
# question mark means that the value may be null.
sub contract {
    my ($section) = slurp_file('docs/console.md') =~ /^### JSON\n(.*?)^##/ms;
    my %contract;
    for (split /\n/, $section) {
        my ($commands, $shape, $fields) = /^\| (`.*?) \| (object|list|line) \| (.*) \|$/ or next;
        my %fields = $fields =~ /`(\w+)` (\w+\??)/g;
        # Commands of a row share what was seen of its fields.
        my $row = { shape => $shape, fields => \%fields, seen => {} };
        $contract{$_} = $row for $commands =~ /`([^`]+)`/g;
    }
    return %contract;
}

my %contract = contract();

# JSON::PP keeps apart what was a number and what a text.
sub is_number { return B::svref_2object(\$_[0])->FLAGS & (B::SVp_IOK | B::SVp_NOK) }

my %is_of = (
    id => sub { !ref $_[0] && !is_number($_[0]) && $_[0] =~ /^[1-9]\d*\z/ },
    text => sub { !ref $_[0] && !is_number($_[0]) },
    number => sub { !ref $_[0] && is_number($_[0]) },
    boolean => sub { JSON::PP::is_bool($_[0]) },
    time => sub {
        !ref $_[0] && $_[0] =~ /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)\z/;
    },
    texts => sub { ref $_[0] eq 'ARRAY' && !grep { ref || is_number($_) } @{ $_[0] } },
    objects => sub { ref $_[0] eq 'ARRAY' && !grep { ref ne 'HASH' } @{ $_[0] } },
    object => sub { ref $_[0] eq 'HASH' },
    any => sub { 1 },
);

# What is wrong with a row, if anything; notes which fields had a value.
sub faults {
    my ($fields, $row, $seen) = @_;
    my @faults = map { "$_ is not listed" } grep { !exists $fields->{$_} } keys %$row;
    for my $field (keys %$fields) {
        my ($type, $may_be_null) = $fields->{$field} =~ /^(\w+)(\??)$/;
        my $value = $row->{$field};
        if (!exists $row->{$field}) { push @faults, "$field is missing" }
        elsif (!defined $value) { push @faults, "$field is null" if !$may_be_null }
        elsif (!($is_of{$type} // die "no type $type\n")->($value)) {
            push @faults, "$field is no $type: " . JSON::PP->new->allow_nonref->encode($value);
        }
        else { $seen->{$field} = 1 }
    }
    return sort @faults;
}

sub check_rows {
    my ($command, @rows) = @_;
    my $contract = $contract{$command} or return fail("$command stands on the page");
    my @faults = map { faults($contract->{fields}, $_, $contract->{seen}) } @rows;
    is_deeply(\@faults, [], $command);
    cmp_ok(scalar @rows, '>', 0, "$command prints rows") if $contract->{shape} ne 'object';
    return;
}

# Runs a command, whose words of the page come first, and holds what it prints against the page.
sub prints {
    my ($command, @arguments) = @_;
    my $said = pulse($node, '--json', split(' ', $command), @arguments);
    my $document = eval { json_of($said->{out}) };
    return fail("$command: $said->{out}$said->{err}") if !defined $document;
    my $shape = ref $document eq 'ARRAY' ? 'list' : 'object';
    is($shape, $contract{$command}{shape} // 'on the page', "$command prints one");
    check_rows($command, $shape eq 'list' ? @$document : $document);
    return $document;
}

# Each of these ends or goes on in another way, so that each field has a value somewhere.
value($node, q{SELECT pulse.set_queue('post', 5, total => 9, rate => 50, per => '1 min',
        burst => 50);
    SELECT pulse.set_task('mail', max_attempts => 3, timeout => '1 h', queue => 'post',
        dead_letter => 'morgue')});
value($node, q{CREATE FUNCTION public.report(json) RETURNS json LANGUAGE sql AS 'SELECT $1';
    SELECT pulse.set_task('report', handler => 'public.report(json)')});
value($node, q{SELECT pulse.schedule('nightly', 'mail', cron => '0 3 * * *')});
my $info = '{"hostname": "web-1", "pid": 7, "slots": 4, "version": "0.2.0"}';
my $worker = Pulse::Session->new($node);
my $id = $worker->query(qq{SELECT id FROM pulse.register_worker('one', '{mail,step}', '$info')});

# As the worker does, of the next $count jobs.
sub with_claimed {
    my ($count, $call) = @_;
    return $worker->query("SELECT $call FROM pulse.claim($id, $count)");
}

sub check_job {
    my ($job_id) = @_;
    my $page = prints('job', $job_id);
    check_rows('job: job', $page->{job});
    return $page;
}

subtest 'jobs' => sub {
    my $added = prints('add', 'mail', '{"to": "Ada"}', '--key', 'ada', '--flag', 'f', '--start-by',
        '2099-01-01', '--traceparent', '00-' . '1' x 32 . '-' . '2' x 16 . '-01');
    check_job($added->{id});
    with_claimed(1, q{pulse.complete(id, token, '{"sent": 1}')});
    value($node, q{SELECT pulse.add_job('mail', job_key => 'k' || n)
        FROM generate_series(1, 7) AS n});
    with_claimed(2, q{pulse.fail(id, token, 'out of ink', retry => false)});
    with_claimed(1, q{pulse.fail(id, token, 'out of paper')});
    with_claimed(1, q{pulse.progress(id, token, 'half', 0.5, '{"page": 2}', 'printing')});
    value($node, q{SELECT pulse.cancel_job(id, 'not needed') FROM pulse.job
        WHERE state = 'running'});
    value($node, q{INSERT INTO pulse.remembered_key
        VALUES ('mail', 'key', 1, '2100-01-01', current_user)});
    prints('keys');
    prints('forget', 'mail', 'key');
    my $jobs = prints('jobs');
    for my $job (@$jobs) {
        my $page = check_job($job->{id});
        my @lists = grep { @{ $page->{$_} } } qw(explanation attempts);
        check_rows("job: $_", @{ $page->{$_} }) for @lists;
    }
    prints('failures');
    is(scalar(grep { $_->{id} eq $added->{id} } @$jobs), 1, 'the job that was added is among them');
};

subtest 'changes of jobs' => sub {
    my ($failed) = map { $_->{id} } @{ rows_of($node, qw(jobs --state failed)) };
    my ($waiting, $other) = map { $_->{id} }
      @{ rows_of($node, qw(jobs --state), 'ready,parked', '--task', 'mail') };
    my $retried = prints('retry', $failed, '--yes');
    # What has moved since is left alone, with a reason.
    pulse($node, 'reschedule', $failed, '--priority', 2, '--yes');
    prints('undo', $retried->{id}, '--yes');
    prints('reschedule', $waiting, '--priority', 3, '--yes');
    prints('cancel', $waiting, '--reason', 'no', '--yes');
    prints('fail', $other, '--yes');
    my $start = q{SELECT id FROM pulse.start_operation('retry', '{"task": "mail"}')};
    prints('operations run', value($node, $start));
    prints('operations stop', value($node, $start));
    prints('operations');
};

subtest 'queues, tasks and schedules' => sub {
    prints('queues limit', 'post', '--concurrency', 3);
    prints('queues pause', 'post');
    value($node, q{SELECT pulse.add_job('step', run_at => now() - interval '1 min')});
    prints($_) for qw(queues tasks);
    prints('queues resume', 'post');
    prints('queues unset', 'post');
    prints('tasks unset', 'report');
    prints('schedules run', 'nightly', '--yes');
    prints('schedules next', 'nightly');
    prints('schedules');
    prints('schedules pause', 'nightly');
    prints('schedules resume', 'nightly');
    prints('overview');
};

subtest 'flows' => sub {
    value($node, q{SELECT pulse.add_flow('[{"key": "a", "identifier": "step"},
        {"key": "b", "identifier": "step", "after": ["a"]}]', flow_name => 'two')});
    my $flows = prints('flows');
    my $cancelled = prints('flows cancel', $flows->[0]{id}, '--yes');
    is($cancelled->{cancelled}, 2, 'which tells how many jobs it cancelled');
    prints('flows');
};

subtest 'recoveries, as they happen' => sub {
    my $database = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';
    my $tail = Pulse::Program->start('tail', [ 'pulse', '--json', '-d', $database, 'tail' ]);
    wait_until($node, q{SELECT EXISTS (SELECT FROM pg_stat_activity
        WHERE application_name = 'pulse' AND query LIKE '%ended_jobs%')}, 'it looks');
    value($node, q{SELECT pulse.add_job('step')});
    with_claimed(1, q{pulse.fail(id, token, 'x', retry => false)});
    my $line = $tail->lines->wait_for('an end', sub { $_[0] =~ /"finished_at"/ });
    check_rows('tail', json_of($line));
};

subtest 'workers, and what is wrong' => sub {
    prints('workers');
    prints('workers drain', $id, '--yes');
    prints('workers stop', $id, '--yes');
    $worker->query("SELECT pulse.deregister_worker($id)");
    value($node, q{SELECT pulse.declare_lost(id, 'gone')
        FROM pulse.register_worker('two', '{none}')});
    prints('workers', '--all');
    prints('doctor');
};

subtest 'a schedule that was due' => sub {
    value($node, q{SET pulse.clock_offset = '25 h'; SELECT pulse.tick()});
    check_job(prints('schedules')->[0]{last_job_id});
};

# What needs more than this test makes: 10,000 jobs in a flow, a thousand queues, a fault in a
# schedule, …
my %rare = (flows => 'jobs_checked', schedules => 'last_error', operations => 'subject',
    queues => 'more', tasks => 'more', 'job: explanation' => 'until');

subtest 'the page lists each command, and each field had a value' => sub {
    my %prints_no_document = map { $_ => 1 } qw(top serve token);
    my @commands = pulse($node, '--help')->{out} =~ /^  ([a-z]+)  /mg;
    for my $command (@commands) {
        next if $prints_no_document{$command};
        ok($contract{$command}, $command);
        my @below = pulse($node, $command, '--help')->{out} =~ /^  ([a-z]+)  /mg;
        ok($contract{"$command $_"}, "$command $_") for @below;
    }
    for my $command (sort keys %contract) {
        my @unseen = grep { !$contract{$command}{seen}{$_} && $_ ne ($rare{$command} // '') }
          sort keys %{ $contract{$command}{fields} };
        is_deeply(\@unseen, [], "$command: each field had a value");
    }
};

done_testing();
