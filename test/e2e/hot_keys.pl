# P1: many producers add under few keys while workers claim and complete: every add returns a job,
# and the payload that was added last under a key is executed.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Server;
use Pulse::Session;
use Pulse::SqlWorker;

my ($keys, $producers, $consumers, $adds) = (10, 6, 4, 150);
my $node = start_server('main', settings => { %PATIENT, 'pulse.heartbeat_interval' => '5s' });
value($node, 'CREATE SEQUENCE number');
value($node, 'CREATE SEQUENCE turn');
value($node, 'CREATE TABLE added (key text, n bigint, job bigint, turn bigint)');
value($node, 'CREATE TABLE producing AS SELECT 1 AS yes');

# The key is locked from the add to the commit, so the turns of a key are in the order of its adds.
my $produce = qq{DO \$\$
DECLARE
  wanted text;
  job pulse.job;
  mine bigint;
BEGIN
  FOR i IN 1..$adds LOOP
    wanted := 'k' || floor(random() * $keys);
    mine := nextval('number');
    job := pulse.add_job('hot', json_build_object('n', mine), job_key => wanted);
    INSERT INTO added VALUES (wanted, mine, job.id, nextval('turn'));
    COMMIT;
  END LOOP;
END \$\$};

sub consume {
    my ($id) = @_;
    return qq{DO \$\$
DECLARE
  ids bigint[];
  tokens bigint[];
BEGIN
  LOOP
    SELECT array_agg(id), array_agg(token) INTO ids, tokens FROM pulse.claim($id, 3);
    COMMIT;
    -- Who is told "busy" asks again.
    WHILE cardinality(ids) > 0 LOOP
      SELECT array_agg(a.id), array_agg(a.token) INTO ids, tokens
        FROM unnest(ids, tokens) AS a (id, token)
        JOIN pulse.complete_many(ids, tokens) AS o USING (id)
       WHERE o.outcome = 'busy';
      COMMIT;
    END LOOP;
    EXIT WHEN NOT EXISTS (SELECT FROM producing) AND NOT EXISTS (SELECT FROM pulse.job);
  END LOOP;
END \$\$};
}

my @consumers = map { Pulse::SqlWorker->new($node, "consumer $_") } 1 .. $consumers;
$_->ask(consume($_->id)) for @consumers;
my @producers = map { Pulse::Session->new($node) } 1 .. $producers;
$_->ask($produce) for @producers;
for (@producers) {
    $_->answer;
    unlike($_->said, qr/ERROR|FATAL/, 'no add failed');
    $_->quit;
}
value($node, 'DELETE FROM producing');
for (@consumers) {
    $_->answer;
    unlike($_->said, qr/ERROR|FATAL/, 'no worker failed');
    $_->quit;
}

is(value($node, 'SELECT count(*) FROM added WHERE job IS NOT NULL'),
    $producers * $adds, 'every add returned a job');
cmp_ok(value($node, 'SELECT count(*) FROM pulse.finished_job'), '>', $keys, 'many jobs ran');
is( value($node, q{SELECT key, max(turn) FROM added GROUP BY key
        EXCEPT SELECT a.key, a.turn FROM added AS a JOIN pulse.finished_job AS f
            ON f.id = a.job AND (f.payload->>'n')::bigint = a.n AND f.state = 'completed'}),
    '', 'what was added last under each key was executed');
expect_healthy($node);
done_testing();
