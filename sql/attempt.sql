-- Ends of attempts other than a plain success. extension/finish/attempt_end.cpp decides the next
-- state for every caller. It locks the row, then the job key, and waits for neither.

CREATE OR REPLACE FUNCTION pulse_internal.end_attempts(
    endings pulse_internal.ending[], tokens bigint[] = NULL, max_count int = NULL)
  RETURNS TABLE (id bigint, state text, outcome text)
  LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 100 AS 'MODULE_PATHNAME', 'pulse_end_attempts';
COMMENT ON FUNCTION pulse_internal.end_attempts(pulse_internal.ending[], bigint[], int) IS
  'Ends at most max_count attempts: each job is cancelled, quarantined or failed, or waits again. '
  'The tokens stand beside the endings; NULL means the attempt that runs, whatever its token. '
  'Returns the new state of each job whose attempt it ended; leaves jobs whose row another '
  'transaction holds.';
