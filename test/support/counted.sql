-- Returns when commits have counted every job. The first poll asks for the recount. With a library
-- that counts nothing, as that of an older release, nothing is awaited.
DO $$
DECLARE
  jobs bigint := (SELECT count(*) FROM pulse.job);
  is_counted boolean := to_regproc('pulse_internal.depths') IS NULL;
BEGIN
  WHILE is_counted IS NOT TRUE LOOP
    EXECUTE $sql$SELECT d.is_exact AND d.ready + d.parked + d.running = $1
                   FROM pulse_internal.depths() AS d WHERE d.kind = 'all'$sql$
      INTO is_counted USING jobs;
    COMMIT;
  END LOOP;
END $$;
