# Sessions that wait for the end of jobs while workers are killed and attempts fail: each is told
# what the task wrote, holds nothing meanwhile, and none sleeps through an end. PULSE_WAIT_CALLS
# says how many calls (2,000), PULSE_WAIT_SESSIONS of how many sessions (8).
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::Tasks;
use Pulse::Worker;

use constant CALLS => $ENV{PULSE_WAIT_CALLS} // 2000;
# A worker is killed after each part of the calls, and all workers after every fourth part.
use constant { SESSIONS => $ENV{PULSE_WAIT_SESSIONS} // 8, PARTS => CALLS > 20_000 ? 50 : 12 };

# Without prepared transactions no session polls, nor does the server's timer make it look: what a
# commit does not tell is told when max_wait is over, far too late.
my %settings = (%PATIENT, 'pulse.poll_interval' => '1h', max_prepared_transactions => 0,
    client_connection_check_interval => 0);
my $node = start_server('main',
    settings => { %settings, max_connections => SESSIONS + 40 });
value($node, 'CREATE TABLE heard (job bigint, ended int, state text, result text)');
value($node, 'CREATE TABLE slow (what text, took interval)');

# Each call waits for one, two or three jobs. One in twenty is of an executable, the others of a
# process that stays.
my $calls = <<'SQL';
DO $do$
DECLARE
  jobs bigint[];
  ended int;
  began timestamptz;
BEGIN
  FOR i IN 1 .. %d LOOP
    jobs := ARRAY(SELECT (pulse.add_job(CASE i %% 20 WHEN 0 THEN 'work' ELSE 'talk' END,
                                        max_attempts => 4)).id
                    FROM generate_series(0, i %% 3));
    COMMIT;
    began := clock_timestamp();
    CALL pulse.wait_for_end(jobs, '120 s', false, ended);
    INSERT INTO heard
      SELECT j, ended, e.state, e.result ->> 'value'
        FROM unnest(jobs) AS j LEFT JOIN pulse.ended(jobs) AS e ON e.id = j;
    INSERT INTO slow SELECT 'call', clock_timestamp() - began
     WHERE clock_timestamp() - began > '60 s';
    COMMIT;
  END LOOP;
END $do$
SQL

# One job in ten fails once, one in fifty for good. Each attempt first writes down how it will end.
my $decide = <<'SH';
decide() {
    value=$RANDOM$RANDOM
    if ((PULSE_JOB_ID % 50 == 7 || PULSE_JOB_ID % 10 == 3 && PULSE_ATTEMPT == 1)); then
        value=failed
    fi
    tell "$value"
}
SH
my $tasks = Pulse::Tasks->new(
    work => $decide . <<'SH',
decide
if [[ $value == failed ]]; then exit 1; fi
echo "{\"result\": {\"value\": \"$value\"}}" >&3
SH
    talk => $decide . <<'SH');
while read -r line; do
    [[ $line =~ '"job":{"id":'([0-9]+)',"token":'([0-9]+) ]] || continue
    PULSE_JOB_ID=${BASH_REMATCH[1]} PULSE_TOKEN=${BASH_REMATCH[2]}
    [[ $line =~ '"attempt":'([0-9]+) ]] && PULSE_ATTEMPT=${BASH_REMATCH[1]}
    decide
    answer="\"result\": {\"value\": \"$value\"}"
    if [[ $value == failed ]]; then answer='"error": "refused"'; fi
    echo "{\"id\": $PULSE_JOB_ID, $answer}"
done
SH

my ($started, @workers) = (0);

sub start_worker {
    push @workers, Pulse::Worker->start_registered($node, 'worker-' . ++$started,
        tasks => $tasks, concurrency => 4,
        options => ['--process', 'talk=' . $tasks->folder . '/talk']);
    return;
}

# Without a worker all calls that are left come to wait. One that an end has just woken seems to
# wait until it runs, and may hold something a moment later: all must be seen at rest at once.
sub expect_nothing_held {
    my ($part) = @_;
    wait_until($node, q{SELECT bool_and(wait_event = 'Extension' AND backend_xid IS NULL
            AND backend_xmin IS NULL)
        FROM pg_stat_activity WHERE query LIKE '%CALL pulse.wait_for_end%'
        AND pid <> pg_backend_pid() AND state = 'active'},
        'all sessions wait, and none holds a transaction id or a snapshot');
    pass("all sessions wait and hold nothing, at part $part");
    return;
}

subtest 'what each is told is what the task wrote' => sub {
    value($node, "SELECT pulse.set_task('$_', backoff => 'none', keep_completed => '1 hour')")
      for qw(work talk);
    start_worker() for 1 .. 2;
    my @sessions = map { Pulse::Session->new($node) } 1 .. SESSIONS;
    $_->ask(sprintf $calls, CALLS / SESSIONS) for @sessions;
    for my $part (1 .. PARTS - 1) {
        wait_until($node, sprintf('SELECT count(*) > %d FROM heard', 2 * CALLS * $part / PARTS),
            'calls return');
        (shift @workers)->kill;
        if ($part % 4 == 0) {
            (shift @workers)->kill;
            expect_nothing_held($part);
        }
        start_worker() while @workers < 2;
    }
    for (@sessions) {
        is($_->answer . $_->said, '', 'nothing was refused');
        $_->quit;
    }
    $_->kill for @workers;
};

sub heard { return value($node, "SELECT count(*) FROM heard WHERE $_[0]") }

subtest 'and everything came' => sub {
    cmp_ok(heard('true'), '>=', CALLS, 'all calls returned');
    is(heard('state IS NULL'), 0, 'each job had ended when its call returned');
    cmp_ok(heard("state = '$_'"), '>', 0, "some $_") for qw(completed failed);
    is(value($node, 'SELECT count(*) FROM slow'), 0, 'no call slept through an end');
    # A line has a word, which is the value or "failed", the task and the job.
    my %last = map { my ($word, undef, $job) = split / /; ($job => $word) } $tasks->lines->lines;
    my @other = grep {
        my ($job, $state, $value) = split /\|/, $_, -1;
        ($last{$job} // 'nothing') ne ($state eq 'completed' ? $value : 'failed')
          && $state ne 'quarantined'
    } split /\n/, value($node, 'SELECT job, state, result FROM heard');
    is_deeply(\@other, [], 'and was what its task wrote last');
};

expect_healthy($node);
done_testing();
