# Functions that run as tasks and leave in their session whatever one can leave there.
package Pulse::Litter;

use strict;
use warnings FATAL => 'all';

use Exporter qw(import);

use Pulse::Server qw(value);

our @EXPORT = qw(make_litter_tasks litter);

my $tasks = <<'SQL';
CREATE SCHEMA app;
CREATE SEQUENCE app.number;
CREATE TABLE app.seen (job_id bigint, pid int, what text);
CREATE TABLE app.checked (tenant text, seen_by_trigger text);
CREATE FUNCTION app.check_tenant() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE app.checked SET seen_by_trigger = current_setting('app.tenant')
   WHERE tenant = NEW.tenant;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER check_tenant AFTER INSERT ON app.checked
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION app.check_tenant();
-- What a session has that it had not when it was opened.
CREATE FUNCTION app.left_in_session() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  number text;
BEGIN
  BEGIN
    number := currval('app.number');
  EXCEPTION WHEN object_not_in_prerequisite_state THEN
    NULL;
  END;
  RETURN concat_ws(', ',
    'tenant ' || nullif(current_setting('app.tenant', true), ''),
    'path ' || nullif(current_setting('search_path'), '"$user", public'),
    'read only ' || nullif(current_setting('default_transaction_read_only'), 'off'),
    (SELECT 'tables ' || string_agg(c.relname, ' ') FROM pg_class AS c
      WHERE c.relnamespace = pg_my_temp_schema() AND c.relkind = 'r'),
    (SELECT 'locks ' || string_agg(l.objid::text, ' ') FROM pg_locks AS l
      WHERE l.locktype = 'advisory' AND l.pid = pg_backend_pid()),
    (SELECT 'statements ' || string_agg(s.name, ' ') FROM pg_prepared_statements AS s
      WHERE s.from_sql),
    (SELECT 'channels ' || string_agg(c, ' ') FROM pg_listening_channels() AS c),
    (SELECT 'cursors ' || string_agg(c.name, ' ') FROM pg_cursors AS c WHERE c.is_holdable),
    'number ' || number);
END $$;
CREATE FUNCTION app.look(job pulse.claimed_job) RETURNS void LANGUAGE sql AS $$
  INSERT INTO app.seen VALUES (job.id, pg_backend_pid(), app.left_in_session()) $$;
CREATE FUNCTION app.litter(job pulse.claimed_job) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO app.seen VALUES (job.id, pg_backend_pid(), app.left_in_session());
  PERFORM set_config('app.tenant', job.payload ->> 'tenant', false),
    set_config('search_path', 'app, public', false),
    set_config('default_transaction_read_only', 'on', false),
    pg_advisory_lock(17), pg_advisory_lock(17), pg_advisory_xact_lock(18),
    nextval('app.number');
  CREATE TEMP TABLE note AS SELECT job.payload;
  CREATE FUNCTION pg_temp.secret() RETURNS int LANGUAGE sql AS 'SELECT 1';
  EXECUTE 'PREPARE mine AS SELECT 1';
  LISTEN news;
  EXECUTE 'DECLARE held CURSOR WITH HOLD FOR SELECT * FROM note';
  INSERT INTO app.checked VALUES (job.payload ->> 'tenant');
  IF job.payload ->> 'end' = 'fail' THEN
    RAISE EXCEPTION 'no';
  END IF;
END $$;
CREATE FUNCTION app.fails_within(payload json) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  LISTEN news;
  BEGIN
    PERFORM pg_advisory_lock(19);
    EXECUTE 'PREPARE mine AS SELECT 1';
    RAISE EXCEPTION 'no';
  EXCEPTION WHEN raise_exception THEN NULL;
  END;
END $$;
SELECT pulse.set_task('litter', max_attempts => 1, handler => 'app.litter(pulse.claimed_job)'),
  pulse.set_task('look', handler => 'app.look(pulse.claimed_job)'),
  pulse.set_task('look too', handler => 'app.look(pulse.claimed_job)'),
  pulse.set_task('fails within', handler => 'app.fails_within(json)');
SQL

# The tasks "litter", "look" and "look too", which note in app.seen what they found, and
# "fails within".
sub make_litter_tasks {
    my ($node) = @_;
    $node->safe_psql('postgres', $tasks);
    return;
}

# A job of the task "litter"; with the end "fail" it fails.
sub litter {
    my ($node, $payload) = @_;
    return value($node, "SELECT id FROM pulse.add_job('litter', '$payload')");
}

1;
