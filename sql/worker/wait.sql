-- Waiting for work without holding back vacuum: see extension/wake/wait_for_job.cpp. The procedure
-- has neither SECURITY DEFINER nor SET: either would make the call atomic and pin a snapshot.

CREATE OR REPLACE PROCEDURE pulse.wait_for_job(worker_id bigint, max_wait interval = '30 s')
  LANGUAGE c AS 'MODULE_PATHNAME', 'pulse_wait_for_job';
COMMENT ON PROCEDURE pulse.wait_for_job(bigint, interval) IS
  'Returns when this worker may have a job to claim, when an operator drains or stops the worker, '
  'or after max_wait (at most 1 day). Raises a notice of code PU100 when a sweep is due. The '
  'first 32 waiters of a database return after 30 s at the latest, so that some worker always '
  'polls. Wake-ups are exact for the session that claimed last for this worker. Raises PU004 for '
  'a value out of range, PU006 inside a transaction block.';
