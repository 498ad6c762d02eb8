-- What all files here measure with. Each of them runs in one session of a database of its own, on a
-- server where nothing else writes, and leaves its figures in cost.figure.
CREATE EXTENSION pg_pulse;
CREATE EXTENSION pg_walinspect;
-- Without this the rows that the script of the extension replaced lie where chance put them.
VACUUM FULL pg_catalog.pg_proc;
VACUUM pg_catalog.pg_depend, pg_catalog.pg_class, pg_catalog.pg_attribute, pg_catalog.pg_type;
CREATE SCHEMA cost;

CREATE TABLE cost.figure (
  name  text PRIMARY KEY,
  value numeric NOT NULL
);

CREATE FUNCTION cost.note(name text, value numeric) RETURNS void
  LANGUAGE sql AS $$
  INSERT INTO cost.figure VALUES (name, value);
$$;

CREATE FUNCTION cost.place() RETURNS pg_lsn
  LANGUAGE sql AS $$
  SELECT pg_current_wal_insert_lsn();
$$;

-- The records between two places of the log, of which each takes a multiple of eight bytes; without
-- those that the server's own processes write on a timer. An index entry that splits a page is the
-- split's record.
CREATE FUNCTION cost.written(
    since pg_lsn, until pg_lsn,
    OUT bytes numeric, OUT records numeric, OUT updates numeric, OUT updates_in_place numeric,
    OUT index_entries numeric)
  LANGUAGE sql AS $$
  SELECT coalesce(sum((record_length + 7) / 8 * 8), 0), count(*),
         count(*) FILTER (WHERE kind LIKE 'Heap/%UPDATE%'),
         count(*) FILTER (WHERE kind LIKE 'Heap/HOT_UPDATE%'),
         count(*) FILTER (WHERE kind LIKE 'Btree/INSERT%' OR kind LIKE 'Btree/SPLIT%')
    FROM (SELECT resource_manager || '/' || record_type AS kind, record_length
            FROM pg_get_wal_records_info(since, until)
           WHERE since < until AND resource_manager NOT IN ('Standby', 'XLOG')) AS record;
$$;

-- The log can be read as far as it is flushed, and some calls do not wait for that.
CREATE PROCEDURE cost.flush()
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_logical_emit_message(true, 'cost', '');
  COMMIT;
END $$;

-- Between any two marks in turn one call was made; the log of every `step`th of them, from `first`.
CREATE FUNCTION cost.of_calls(marks pg_lsn[], first int, step int)
  RETURNS TABLE (bytes numeric, records numeric, updates numeric, updates_in_place numeric,
                 index_entries numeric)
  LANGUAGE sql AS $$
  SELECT sum(w.bytes), sum(w.records), sum(w.updates), sum(w.updates_in_place),
         sum(w.index_entries)
    FROM generate_series(first, cardinality(marks) - 1, step) AS i,
         cost.written(marks[i], marks[i + 1]) AS w;
$$;

CREATE FUNCTION cost.worker(tasks text[] = '{no_op}') RETURNS bigint
  LANGUAGE sql AS $$
  SELECT id FROM pulse.register_worker('cost', tasks);
$$;

CREATE FUNCTION cost.jobs(
    count int, identifier text = 'no_op', queue_name text = NULL, run_at timestamptz = NULL)
  RETURNS pulse.job_spec[]
  LANGUAGE sql AS $$
  SELECT array_agg(ROW(identifier, '{"n": 1}', format(queue_name, i), run_at, NULL, NULL, NULL,
                       NULL)::pulse.job_spec)
    FROM generate_series(1, count) AS i;
$$;

-- Buffers and rows of one statement, as the top of its plan tells.
CREATE FUNCTION cost.explained(statement text, OUT buffers int, OUT rows int)
  LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ' || statement INTO plan;
  plan := plan -> 0 -> 'Plan';
  buffers := (plan ->> 'Shared Hit Blocks')::int + (plan ->> 'Shared Read Blocks')::int;
  rows := (plan ->> 'Actual Rows')::numeric;  -- servers from 18 on write a fraction
END $$;
