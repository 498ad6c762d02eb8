-- How an attempt ends that does not simply succeed: extension/finish/attempt_end.cpp decides it for
-- every caller, and locks what it changes: the row first, then the key, neither waited for.

CREATE OR REPLACE FUNCTION pulse._end_attempts(endings pulse._ending[])
  RETURNS TABLE (id bigint, state text, outcome text)
  LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 100 AS 'MODULE_PATHNAME', 'pulse_end_attempts';
COMMENT ON FUNCTION pulse._end_attempts(pulse._ending[]) IS
  'ends attempts: the job is cancelled, quarantined or failed, or waits again. Returns the new '
  'states of those that it ended, and leaves those that another transaction holds';
