-- Commits of the caller's own rows only under a current claim: see extension/finish/fence.cpp.

CREATE OR REPLACE FUNCTION pulse.fence(job_id bigint, token bigint) RETURNS void
  LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_fence';
COMMENT ON FUNCTION pulse.fence(bigint, bigint) IS
  'Ties this transaction to a claim: COMMIT fails with PU001 unless the claim is then still '
  'current or was ended by this transaction. Raises PU001 at once when the claim is already lost.';

CREATE OR REPLACE FUNCTION pulse_internal.fences(
    OUT job_id bigint, OUT token bigint, OUT fault text)
  RETURNS SETOF record
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE ROWS 10 AS 'MODULE_PATHNAME', 'pulse_fences';
COMMENT ON FUNCTION pulse_internal.fences() IS
  'Returns the fences of this transaction, and why each fence would refuse the commit now; NULL '
  'where the fence would not refuse.';
