-- Which jobs run. Those claimed in place (extension/claim/in_place_claim.hpp) are not in the lane
-- of held jobs, so whoever looks for running jobs asks here; each answers ids, because no planner
-- can then choose to read the whole table.

CREATE OR REPLACE FUNCTION pulse._running_ids(worker_id bigint, max_count int = NULL) RETURNS bigint[]
  LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_running_ids';
COMMENT ON FUNCTION pulse._running_ids(bigint, int) IS
  'at most so many running jobs of this worker, or of all when it is NULL';

CREATE OR REPLACE FUNCTION pulse._has_claims() RETURNS boolean
  LANGUAGE c STABLE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_has_claims';
COMMENT ON FUNCTION pulse._has_claims() IS
  'whether any worker may have running jobs: one is held, or a claim in place is listed';

CREATE OR REPLACE FUNCTION pulse._index_running(worker_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_settle_claims';
COMMENT ON FUNCTION pulse._index_running(bigint) IS
  'moves what this worker claimed in place and still runs to the lane of held jobs, but for what '
  'others hold right now';

CREATE OR REPLACE FUNCTION pulse._forget_ended(
    worker_id bigint, ended bigint[] = '{}', max_count int = 1)
  RETURNS int
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_unlist_ended';
COMMENT ON FUNCTION pulse._forget_ended(bigint, bigint[], int) IS
  'forgets claims in place of this worker of which no job runs any more, and returns how many jobs '
  'on its list still run, counting no more than `max_count` per row. ended: jobs of which the caller '
  'knows that they do not run';
