-- What others hang on our tables runs with our rights, so it finds names where we do and not where
-- the caller looks.
\ir support/setup.psql
SELECT plan(14);

CREATE TABLE public.heard (place text, path text);
CREATE FUNCTION public.hear() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.heard
    VALUES (format('%s %s', TG_TABLE_NAME, TG_WHEN), current_setting('search_path'));
  RETURN NEW;
END $$;
-- An index may call nothing that writes to a table. Of several calls a path that is not ours stays.
CREATE FUNCTION public.seen(id bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF coalesce(current_setting('test.seen', true), '') IN ('', 'pg_catalog, pg_temp') THEN
    PERFORM set_config('test.seen', current_setting('search_path'), false);
  END IF;
  RETURN id;
END $$;
CREATE FUNCTION public.heard_at(place text) RETURNS text[] LANGUAGE sql
  RETURN (SELECT array_agg(h.path) FROM public.heard AS h WHERE h.place = heard_at.place);
CREATE SCHEMA caller;

-- --- triggers -----------------------------------------------------------------------------------

CREATE TRIGGER hear_before BEFORE INSERT ON pulse.job
  FOR EACH ROW EXECUTE FUNCTION public.hear();
CREATE TRIGGER hear_after AFTER INSERT ON pulse.job
  FOR EACH ROW EXECUTE FUNCTION public.hear();
SELECT given_worker('ann') AS ann \gset
SET LOCAL search_path = caller, public, pg_catalog;
SELECT id FROM pulse.add_job('mail') \g /dev/null
SELECT id FROM pulse.add_jobs(
  ARRAY[('mail', NULL, NULL, NULL, NULL, NULL, NULL, NULL)]::pulse.job_spec[]) \g /dev/null
SELECT is(current_setting('search_path'), 'caller, public, pg_catalog',
  'who adds jobs keeps the path');
SELECT is(public.heard_at('job BEFORE'), '{"pg_catalog, pg_temp","pg_catalog, pg_temp"}',
  'a trigger before a job is added does not see the caller''s path');
SELECT is(public.heard_at('job AFTER'), '{"pg_catalog, pg_temp","pg_catalog, pg_temp"}',
  'nor one after it');
DROP TRIGGER hear_before ON pulse.job;
DROP TRIGGER hear_after ON pulse.job;

CREATE TRIGGER hear_before BEFORE INSERT ON pulse.claim_batch
  FOR EACH ROW EXECUTE FUNCTION public.hear();
CREATE TRIGGER hear_after AFTER INSERT ON pulse.claim_batch
  FOR EACH ROW EXECUTE FUNCTION public.hear();
SELECT is((SELECT count(*)::int FROM pulse.claim(:ann, 10)), 2,
  'a claim works under triggers of others');
-- None is noted where the library is not preloaded.
SELECT CASE WHEN EXISTS (SELECT FROM pulse.claim_batch)
         THEN '{"pg_catalog, pg_temp"}' ELSE '' END AS ours \gset
SELECT is(public.heard_at('claim_batch BEFORE'), nullif(:'ours', '')::text[],
  'a trigger before a claim is noted does not see the caller''s path');
SELECT is(public.heard_at('claim_batch AFTER'), nullif(:'ours', '')::text[], 'nor one after it');
DROP TRIGGER hear_before ON pulse.claim_batch;
DROP TRIGGER hear_after ON pulse.claim_batch;

CREATE TRIGGER hear_before BEFORE UPDATE OF isolated_job_id ON pulse.heartbeat
  FOR EACH ROW EXECUTE FUNCTION public.hear();
SELECT given_job() AS suspect \gset
UPDATE pulse.job SET crashes = 2 WHERE id = :suspect;
SELECT given_worker('idle') AS idle \gset
SELECT is(claimed_ids(:idle, 10), ARRAY[:suspect]::bigint[], 'a poison suspect runs isolated');
SELECT is(public.heard_at('heartbeat BEFORE'), '{"pg_catalog, pg_temp"}',
  'a trigger before that is noted does not see the caller''s path');
DROP TRIGGER hear_before ON pulse.heartbeat;
DELETE FROM pulse.job WHERE id = :suspect;

-- --- index expressions --------------------------------------------------------------------------

SELECT count(*) FROM pulse.claim(:ann, 10) \g /dev/null
CREATE INDEX ON pulse.job (public.seen(id));
SELECT set_config('test.seen', '', false) \g /dev/null
SELECT id FROM pulse.add_job('mail', job_key => 'k') \g /dev/null
SELECT is(current_setting('test.seen'), 'pg_catalog, pg_temp',
  'nor does an index where a job is added');
SELECT set_config('test.seen', '', false) \g /dev/null
SELECT is((SELECT count(*)::int FROM pulse.claim(:ann, 1)), 1, 'a job with a key is claimed');
SELECT is(current_setting('test.seen'), 'pg_catalog, pg_temp',
  'nor does an index where a job is claimed');

-- The other tables have rows of their own, and an index may call a function to choose among them.
CREATE INDEX ON pulse.attempt (public.seen(job_id));
CREATE INDEX ON pulse.finished_job (id) WHERE public.seen(id) > 0;
SELECT id, token FROM pulse.job WHERE state = 'running' LIMIT 1 \gset
SELECT set_config('test.seen', '', false) \g /dev/null
SELECT is(pulse.fail(:id, :token, 'error', false), 'failed', 'a job fails for good');
SELECT is(current_setting('test.seen'), 'pg_catalog, pg_temp',
  'nor does the predicate of an index where a job ends');
DROP INDEX pulse.finished_job_id_idx;
SELECT id, token FROM pulse.job WHERE state = 'running' LIMIT 1 \gset
SELECT set_config('test.seen', '', false) \g /dev/null
SELECT pulse.fail(:id, :token, 'error') \g /dev/null
SELECT is(current_setting('test.seen'), 'pg_catalog, pg_temp',
  'nor does an index where an attempt is recorded');

SELECT * FROM finish();
ROLLBACK;
