# Sessions that wait for the end of jobs while workers are killed and attempts fail: each is told
# what the task wrote, and none sleeps through an end. PULSE_WAIT_CALLS says how many calls.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::Tasks;
use Pulse::Worker;

use constant { SESSIONS => 8, CALLS => $ENV{PULSE_WAIT_CALLS} // 2000 };

# Without prepared transactions no session polls, nor does the server's timer make it look: what a
# commit does not tell is told when max_wait is over, far too late.
my %settings = (%PATIENT, 'pulse.poll_interval' => '1h', max_prepared_transactions => 0,
    client_connection_check_interval => 0);
my $node = start_server('main',
    settings => { %settings, max_connections => 60 });
value($node, 'CREATE TABLE heard (job bigint, ended int, state text, result text)');
value($node, 'CREATE TABLE slow (what text, took interval)');

# Each call waits for one, two or three jobs.
my $calls = <<'SQL';
DO $do$
DECLARE
  jobs bigint[];
  ended int;
  began timestamptz;
BEGIN
  FOR i IN 1 .. %d LOOP
    jobs := ARRAY(SELECT (pulse.add_job('work', max_attempts => 4)).id
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

# One job in ten fails once, one in fifty for good.
my $tasks = Pulse::Tasks->new(work => <<'SH');
value=$RANDOM$RANDOM
if ((PULSE_JOB_ID % 50 == 7)); then tell failed; exit 1; fi
if ((PULSE_JOB_ID % 10 == 3 && PULSE_ATTEMPT == 1)); then tell failed; exit 1; fi
tell "$value"
echo "{\"result\": {\"value\": \"$value\"}}" >&3
SH

subtest 'what each is told is what the task wrote' => sub {
    value($node, q{SELECT pulse.set_task('work', backoff => 'none', keep_completed => '1 hour')});
    my ($number, @workers) = (0);
    my $start = sub {
        return Pulse::Worker->start_registered($node, 'worker-' . ++$number,
            tasks => $tasks, concurrency => 4);
    };
    push @workers, $start->() for 1 .. 2;
    my @sessions = map { Pulse::Session->new($node) } 1 .. SESSIONS;
    $_->ask(sprintf $calls, CALLS / SESSIONS) for @sessions;
    # A worker is killed after each twelfth of the calls.
    for my $part (1 .. 11) {
        wait_until($node, "SELECT count(*) > ${\CALLS} * $part / 12 FROM heard", 'calls return');
        (shift @workers)->kill;
        push @workers, $start->();
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
