-- The keys of add_job_once, at a bounded cost, however many the table remembers.

CREATE OR REPLACE FUNCTION pulse.list_unique_keys(
    of_task text = NULL, of_key text = NULL, max_rows int = 100)
  RETURNS TABLE (identifier text, unique_key text, unique_until timestamptz, job_id bigint,
                 state text, added_by text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL UNSAFE ROWS 100
  SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
  SET jit = off AS $$
DECLARE
  max_read CONSTANT int := 20000;
BEGIN
  PERFORM pulse_internal.check_count('max_rows', max_rows, 1, 1000);
  RETURN QUERY
  SELECT l.identifier, l.unique_key, l.unique_until, l.job_id,
         pulse_internal.state_of_remembered(l.job_id), l.added_by
    FROM (SELECT r.* FROM (
            SELECT * FROM (
              SELECT * FROM pulse.remembered_key AS k
               WHERE of_key IS NULL AND k.unique_until > pulse.now()
               ORDER BY k.unique_until DESC LIMIT max_read) AS latest
            UNION ALL
            SELECT * FROM pulse.remembered_key AS k
             WHERE k.unique_key = of_key AND k.unique_until > pulse.now()) AS r
           WHERE r.identifier = of_task OR of_task IS NULL
           ORDER BY r.unique_until DESC, r.job_id DESC LIMIT max_rows) AS l
   ORDER BY l.unique_until DESC, l.job_id DESC;
END $$;
COMMENT ON FUNCTION pulse.list_unique_keys(text, text, int) IS
  'Returns the keys of add_job_once whose period lasts, of this task and this key where given, at '
  'most max_rows (1 to 1000), those that last longest first. state: of the job, as add_job_once '
  'tells it; added_by: the producer of the job. Without a key the call reads the 20,000 keys that '
  'last longest. Raises PU004 for max_rows out of range.';
