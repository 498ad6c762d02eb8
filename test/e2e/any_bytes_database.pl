# A database of encoding SQL_ASCII takes any bytes as text. A job of bytes that are not UTF-8 would
# make each claim fail that takes the job, and so hold up all jobs behind it: nothing of a job can
# be such bytes.
use strict;
use warnings FATAL => 'all';

use Test::More;

use Pulse::Console;
use Pulse::Server;
use Pulse::Tasks;
use Pulse::Worker;

my $node = start_server('main', settings => \%PATIENT);
value($node, q{CREATE DATABASE bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'});
sub ask { return value($node, $_[0], 'bytes') }
ask(<<'SQL');
CREATE EXTENSION pg_pulse;
CREATE FUNCTION refusal_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE statement;
  RETURN 'taken';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLERRM;
END $$;
SQL
my $latin = q{convert_from('\xe4', 'SQL_ASCII')};
my $utf8 = q{convert_from('\xc3a4', 'SQL_ASCII')};
is(ask("SELECT length($latin), length($utf8)"), '1|2', 'given a database that knows no characters');

my $document = "json_build_object('name', $latin)";
my $worker = ask(q{SELECT id FROM pulse.register_worker('ann')});
ask(qq{SELECT pulse.set_task('held', keep_completed => '1 day'); SELECT pulse.add_job('held')});
my $claim = ask("SELECT id, token FROM pulse.claim($worker)") =~ s/\|/, /r;
for my $call (
    "add_job('a', $document)",
    "add_job($latin)",
    "add_job('a', queue_name => $latin)",
    "add_job('a', job_key => $latin)",
    "add_job('a', flags => ARRAY[$latin])",
    "add_jobs(ARRAY(SELECT json_populate_record(NULL::pulse.job_spec,
       json_build_object('identifier', 'a', 'payload', $document))))",
    "add_job_once('1 day', 'k', 'a', $document)",
    "add_job_once('1 day', $latin, 'a')",
    "add_job_after('{}', 'a', $document)",
    "add_job_for_request($latin, 'k', 'h', 'a')",
    "add_job_for_request('c', $latin, 'h', 'a')",
    "add_flow(json_build_array(json_build_object('identifier', 'a', 'payload', $document)))",
    "add_flow('[{\"identifier\": \"a\"}]', $latin)",
    "schedule('nightly', 'a', every => '1 day', payload => $document)",
    "set_task($latin)",
    "set_queue($latin)",
    "register_worker($latin)",
    "complete($claim, $document)",
    "progress($claim, checkpoint => $document)",
    "snooze($claim, '1 day', $document)",
) {
    my $refusal = ask("SELECT refusal_of(\$\$SELECT pulse.$call\$\$)");
    like($refusal, qr{is not UTF-8$}, "refused: $call");
}

ask("SELECT pulse.progress($claim, 'half ' || $latin, stage => $latin)");
is(ask(q{SELECT message, stage FROM pulse.job WHERE identifier = 'held'}), 'half ?|?',
    'progress is told in readable words');
ask("SELECT pulse.fail($claim, 'no ' || $utf8 || $latin || ' ink', false)");
is(ask("SELECT last_error = 'no ' || $utf8 || '? ink' FROM pulse.finished_job"),
    't', 'an error, too');
my $late = ask(q{SELECT id FROM pulse.add_job('b', run_at => 'tomorrow')});
ask("SELECT pulse.cancel_job($late, 'for ' || $latin)");
is(pulse_at($node->connstr('bytes'), 'jobs')->{status}, 0, 'pulse lists the jobs');

ask(qq{SELECT pulse.add_job('say', json_build_object('name', $utf8), queue_name => $utf8)});
my $runs = Pulse::Worker->start($node, 'worker', database => 'bytes',
    tasks => Pulse::Tasks->new(say => 'cat >/dev/null'));
$runs->wait_for('completed', task => 'say');
$runs->signal('TERM');
is($runs->wait_exit, 0, 'a worker runs what is UTF-8');
expect_healthy($node, database => 'bytes');
done_testing();
