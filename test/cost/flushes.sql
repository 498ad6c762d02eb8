-- Which commits wait for the disk. Each is made twenty times, because the server's own process
-- flushes five times a second.

CREATE PROCEDURE cost.note_flushes(name text, statements text[], of_interest boolean)
  LANGUAGE plpgsql AS $$
DECLARE
  statement text;
  place pg_lsn;
  found int := 0;
BEGIN
  FOR i IN 1 .. 20 LOOP
    FOREACH statement IN ARRAY statements LOOP
      EXECUTE statement;
    END LOOP;
    place := cost.place();
    COMMIT;
    found := found + ((pg_current_wal_flush_lsn() > place) = of_interest)::int;
  END LOOP;
  PERFORM cost.note(name, found);
END $$;

CREATE TABLE cost.others (of int);
SELECT cost.worker() AS worker \gset
SELECT format('SELECT pulse.heartbeat(%s)', :worker) AS beat,
       $$SELECT pulse.add_job('no_op')$$ AS add,
       'INSERT INTO cost.others VALUES (1)' AS write,
       'SELECT pulse.sweep()' AS sweep \gset

CALL cost.note_flushes('beat_flushes', ARRAY[:'beat'], true);
CALL cost.note_flushes('sweep_flushes', ARRAY[:'sweep'], true);
CALL cost.note_flushes('add_without_flush', ARRAY[:'add'], false);
CALL cost.note_flushes('add_after_beat_without_flush', ARRAY[:'beat', :'add'], false);
CALL cost.note_flushes('add_before_beat_without_flush', ARRAY[:'add', :'beat'], false);
CALL cost.note_flushes('write_after_beat_without_flush', ARRAY[:'beat', :'write'], false);
CALL cost.note_flushes('write_before_sweep_without_flush', ARRAY[:'write', :'sweep'], false);
CALL cost.note_flushes('add_after_sweep_without_flush', ARRAY[:'sweep', :'add', :'beat'], false);
