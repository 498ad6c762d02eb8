-- Marks and promotion: what a commit tells the others, and the one way a queue's job is opened.
-- The work is in extension/queue/promote.cpp and extension/wake/pending_wakes.cpp.

CREATE OR REPLACE FUNCTION pulse._note_job(identifier text, queue_name text, run_at timestamptz)
  RETURNS boolean
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_job';
COMMENT ON FUNCTION pulse._note_job(text, text, timestamptz) IS
  'at commit: wakes a worker for a job made ready, or marks the queue that it waits behind';

CREATE OR REPLACE FUNCTION pulse._note_queue(queue_name text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_queue';
COMMENT ON FUNCTION pulse._note_queue(text) IS 'at commit: marks a queue for promotion';

CREATE OR REPLACE FUNCTION pulse._is_marked(queue_name text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_is_marked';
COMMENT ON FUNCTION pulse._is_marked(text) IS
  'whether the next claims and sweeps will look at this queue';

CREATE OR REPLACE FUNCTION pulse._note_worker(worker_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_worker';
COMMENT ON FUNCTION pulse._note_worker(bigint) IS 'at commit: wakes this worker from its wait';

CREATE OR REPLACE FUNCTION pulse._note_everybody() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_everybody';
COMMENT ON FUNCTION pulse._note_everybody() IS
  'at commit: ends every wait, because a wake-up may have gone to a worker that is lost';

CREATE OR REPLACE FUNCTION pulse._offer_sweep() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_offer_sweep';
COMMENT ON FUNCTION pulse._offer_sweep() IS
  'asks the caller, by a notice of code PU100, for a sweep that is due';

CREATE OR REPLACE FUNCTION pulse._start_sweep() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_start_sweep';
COMMENT ON FUNCTION pulse._start_sweep() IS 'answers the request for a sweep, if there is one';

CREATE OR REPLACE FUNCTION pulse._note_sweep_due(at timestamptz) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_sweep_due';
COMMENT ON FUNCTION pulse._note_sweep_due(timestamptz) IS
  'at commit: asks for a sweep at that time, before its interval ends';

CREATE OR REPLACE FUNCTION pulse._promote_marked(max_count int) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_promote_marked';
COMMENT ON FUNCTION pulse._promote_marked(int) IS
  'promotes marked queues, at most so many marks; true when marks remain';

CREATE OR REPLACE FUNCTION pulse._keep_queue_looks() RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_keep_queue_looks';
COMMENT ON FUNCTION pulse._keep_queue_looks() IS
  'what this transaction saw of queues counts, even if it is undone';

CREATE OR REPLACE FUNCTION pulse._reconcile_queues(max_count int = 0) RETURNS int
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_reconcile_queues';
COMMENT ON FUNCTION pulse._reconcile_queues(int) IS
  'looks at so many queues (0: all) and marks those with a place to give away; returns how many';

CREATE OR REPLACE FUNCTION pulse._lock_queue(queue_name text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_lock_queue';
COMMENT ON FUNCTION pulse._lock_queue(text) IS
  'the queue''s lock, until the transaction ends; waits';
