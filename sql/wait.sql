-- Waiting for work without holding back vacuum: see extension/wake/wait_for_job.cpp.
-- SECURITY INVOKER and without SET, because either would make the call atomic and pin a snapshot.

CREATE OR REPLACE PROCEDURE pulse.wait_for_job(worker_id bigint, max_wait interval = '30 s')
  LANGUAGE c AS 'MODULE_PATHNAME', 'pulse_wait_for_job';
COMMENT ON PROCEDURE pulse.wait_for_job(bigint, interval) IS
  'returns when this worker may have something to claim, when it is told to drain or stop, or '
  'when the time is up; and with a notice of code PU100 when a sweep is due. Of all that wait in '
  'the database the first 32 return after 30 s at the latest, so that somebody looks. Wakes are '
  'exact for the session that claimed last for this worker. PU006 inside a transaction block';
