-- What 10,000 schedules cost a sweep while none of them is due.
SELECT count(pulse.schedule('s' || n, 'no_op', '0 0 1 1 *')) FROM generate_series(1, 10000) AS n
 \g /dev/null
VACUUM ANALYZE pulse.schedule;
CREATE PROCEDURE cost.note_idle_schedules()
  LANGUAGE plpgsql AS $$
DECLARE
  began pg_lsn;
  settle CONSTANT text := 'SELECT pulse_internal.settle_schedules(''infinity'')';
  least_buffers int;
BEGIN
  FOR i IN 1 .. 5 LOOP
    began := pg_current_wal_insert_lsn();
    least_buffers := least(least_buffers, (cost.explained(settle)).buffers);
    PERFORM cost.note('idle_schedules_wal', pg_current_wal_insert_lsn() - began) WHERE i = 5;
    COMMIT;
  END LOOP;
  PERFORM cost.note('idle_schedules_buffers', least_buffers);
END $$;
CALL cost.note_idle_schedules();
