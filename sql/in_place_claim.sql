-- Which jobs run. A job claimed in place (extension/claim/in_place_claim.hpp) stays in the open
-- lane, so every reader of running jobs asks these functions. They return ids, so that no plan of
-- a caller reads the whole table.

CREATE OR REPLACE FUNCTION pulse._running_ids(worker_id bigint, max_count int = NULL)
  RETURNS bigint[]
  LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_running_ids';
COMMENT ON FUNCTION pulse._running_ids(bigint, int) IS
  'Returns the ids of at most max_count running jobs of this worker, in no order. worker_id NULL '
  'means all workers, max_count NULL no limit.';

CREATE OR REPLACE FUNCTION pulse._has_claims() RETURNS boolean
  LANGUAGE c STABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_has_claims';
COMMENT ON FUNCTION pulse._has_claims() IS
  'Returns whether any worker may have running jobs: one job is held, or claim_batch has a row.';

CREATE OR REPLACE FUNCTION pulse._index_running(worker_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_settle_claims';
COMMENT ON FUNCTION pulse._index_running(bigint) IS
  'Moves running jobs that this worker claimed in place to the held lane; leaves those whose row '
  'another transaction holds.';

CREATE OR REPLACE FUNCTION pulse._forget_ended(
    worker_id bigint, ended bigint[] = '{}', max_count int = 1)
  RETURNS int
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_unlist_ended';
COMMENT ON FUNCTION pulse._forget_ended(bigint, bigint[], int) IS
  'Deletes rows of claim_batch of this worker whose jobs have all ended. Returns how many listed '
  'jobs still run, at most max_count for each row. ended names jobs that the caller knows to have '
  'ended.';
