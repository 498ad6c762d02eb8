-- Fencing the caller's own rows: see extension/finish/fence.cpp.

CREATE OR REPLACE FUNCTION pulse.fence(job_id bigint, token bigint) RETURNS void
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_fence';
COMMENT ON FUNCTION pulse.fence(bigint, bigint) IS
  'makes this transaction fail at COMMIT, with PU001, unless the claim is still current then '
  'or was '
  'ended by this transaction. PU001 at once when it is lost already';
