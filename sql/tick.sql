-- Everything periodic in one call, for who has no other clock than a scheduler's: pg_cron, a timer
-- of the system, a person.

-- Half an interval, because who ticks once per interval must not find its own last tick fresh.
CREATE OR REPLACE FUNCTION pulse._swept_just_now() RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN EXISTS (
    SELECT FROM pulse.clock AS c
     WHERE c.timeline = pulse._current_timeline()
       AND clock_timestamp() - c.last_tick
           BETWEEN interval '0' AND pulse._interval(pulse._longest_tick_us() * 2 / 5));
END $$;
COMMENT ON FUNCTION pulse._swept_just_now() IS
  'whether somebody has swept within half a sweep_interval';

-- One transaction for all its sweeps: what they recovered is seen when it ends, so it ends soon.
CREATE OR REPLACE FUNCTION pulse._sweep_for(budget interval, OUT result json, OUT more boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  max_count CONSTANT int := 1000;
  ends timestamptz := clock_timestamp() + budget;
  done pulse._sweep_result;
  total pulse._sweep_result := ROW(0, 0, 0, 0, 0, 0, 0, interval '0');
BEGIN
  LOOP
    SELECT * INTO done FROM pulse.sweep(max_count);
    total := ROW(total.workers_lost + done.workers_lost,
                 total.jobs_requeued + done.jobs_requeued, total.jobs_failed + done.jobs_failed,
                 total.jobs_quarantined + done.jobs_quarantined,
                 total.jobs_timed_out + done.jobs_timed_out,
                 total.jobs_stalled + done.jobs_stalled, done.jobs_skipped_locked,
                 total.skipped_time + done.skipped_time);
    more := pulse._remaining(done, max_count) <= 0 OR done.workers_lost >= max_count;
    EXIT WHEN NOT more OR clock_timestamp() >= ends;
  END LOOP;
  result := row_to_json(total);
END $$;
COMMENT ON FUNCTION pulse._sweep_for(interval) IS
  'sweeps until nothing is left or the time is up; more: something is left';

CREATE OR REPLACE FUNCTION pulse._prune_for(budget interval, OUT pruned int, OUT more boolean)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  max_count CONSTANT int := 1000;
  ends timestamptz := clock_timestamp() + budget;
  step int;
BEGIN
  pruned := 0;
  LOOP
    step := pulse._prune(max_count);
    pruned := pruned + step;
    more := step >= max_count;
    EXIT WHEN NOT more OR clock_timestamp() >= ends;
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse._prune_for(interval) IS
  'prunes until nothing is left or the time is up; more: something is left';

CREATE OR REPLACE FUNCTION pulse.tick() RETURNS json
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  swept record;
  pruned record;
  marks_remain boolean := false;
BEGIN
  PERFORM pulse._require_read_committed('tick');
  SELECT NULL::json AS result, false AS more INTO swept;
  IF pulse._swept_just_now() THEN
    marks_remain := pulse._promote_marked(256);
  ELSE
    swept := pulse._sweep_for(interval '2 s');
  END IF;
  pruned := pulse._prune_for(CASE WHEN swept.more THEN interval '0' ELSE interval '1 s' END);
  RETURN json_build_object('swept', swept.result, 'pruned', pruned.pruned,
                           'more', swept.more OR pruned.more OR marks_remain);
END $$;
COMMENT ON FUNCTION pulse.tick() IS
  'everything periodic: a sweep unless somebody has just swept, promotion, and deletion by age, '
  'for some three seconds at most. more: call again, in a new transaction; what remains is done '
  'by the next tick otherwise. PU007 outside READ COMMITTED';
