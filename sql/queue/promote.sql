-- Promotion marks, promotion and wake-ups: the changes that a commit makes for waiting workers and
-- sessions, and the only way that a queue's job becomes ready. See extension/queue/promote.cpp and
-- extension/wake/pending_wakes.cpp.

CREATE OR REPLACE FUNCTION pulse_internal.note_job(
    identifier text, queue_name text, run_at timestamptz)
  RETURNS boolean
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_job';
COMMENT ON FUNCTION pulse_internal.note_job(text, text, timestamptz) IS
  'Arranges that the commit wakes a worker for a job made ready, or sets the queue mark of the '
  'queue that the job waits behind.';

CREATE OR REPLACE FUNCTION pulse_internal.note_queue(queue_name text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_queue';
COMMENT ON FUNCTION pulse_internal.note_queue(text) IS
  'Arranges that the commit sets the queue mark of a queue.';

CREATE OR REPLACE FUNCTION pulse_internal.is_marked(queue_name text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_is_marked';
COMMENT ON FUNCTION pulse_internal.is_marked(text) IS
  'Returns whether a queue mark is set, so that the next claim or sweep promotes the queue.';

CREATE OR REPLACE FUNCTION pulse_internal.note_worker(worker_id bigint) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_worker';
COMMENT ON FUNCTION pulse_internal.note_worker(bigint) IS
  'Arranges that the commit wakes this worker from a wait.';

CREATE OR REPLACE FUNCTION pulse_internal.note_all_waiters() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_everybody';
COMMENT ON FUNCTION pulse_internal.note_all_waiters() IS
  'Arranges that the commit ends every wait, because a wake-up may have gone to a lost worker.';

-- Only functions of 0.1.0 call it: a heartbeat that waits for an update of the extension goes on
-- with the old body.
CREATE OR REPLACE FUNCTION pulse_internal.offer_sweep() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_offer_sweep';
COMMENT ON FUNCTION pulse_internal.offer_sweep() IS
  'Asks the calling worker, by a notice of code PU100, for a sweep that is due.';

CREATE OR REPLACE FUNCTION pulse_internal.start_sweep() RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_start_sweep';
COMMENT ON FUNCTION pulse_internal.start_sweep() IS
  'Takes the pending request for a sweep, if there is one.';

CREATE OR REPLACE FUNCTION pulse_internal.note_sweep_due(at timestamptz) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_note_sweep_due';
COMMENT ON FUNCTION pulse_internal.note_sweep_due(timestamptz) IS
  'Arranges that the commit asks for a sweep at this time, before the interval of sweeps ends.';

CREATE OR REPLACE FUNCTION pulse_internal.promote_marked(max_count int) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_promote_marked';
COMMENT ON FUNCTION pulse_internal.promote_marked(int) IS
  'Takes at most max_count promotion marks and promotes the queues of each; returns whether '
  'promotion marks remain.';

CREATE OR REPLACE FUNCTION pulse_internal.keep_queue_readings() RETURNS void
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_keep_queue_readings';
COMMENT ON FUNCTION pulse_internal.keep_queue_readings() IS
  'Keeps the readings of queues by this transaction even if the transaction rolls back.';

CREATE OR REPLACE FUNCTION pulse_internal.reconcile_queues(
    max_count int = 0, ends timestamptz = 'infinity')
  RETURNS int
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_reconcile_queues';
COMMENT ON FUNCTION pulse_internal.reconcile_queues(int, timestamptz) IS
  'Checks max_count queues (0: all) until that time, sets the queue marks of queues with a free '
  'place and a waiting job, and returns how many. The next call goes on where a bounded call '
  'ended.';

CREATE OR REPLACE FUNCTION pulse_internal.lock_queue(queue_name text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_lock_queue';
COMMENT ON FUNCTION pulse_internal.lock_queue(text) IS
  'Waits for the queue''s lock, and holds it until the transaction ends.';

CREATE OR REPLACE FUNCTION pulse_internal.try_lock_level(level text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_try_lock_level';
COMMENT ON FUNCTION pulse_internal.try_lock_level(text) IS
  'Takes the lock of the level until the transaction ends, as a promotion that counts the '
  'level''s jobs does; false if another transaction holds the lock.';

CREATE OR REPLACE FUNCTION pulse_internal.is_queue_locked(queue_name text) RETURNS boolean
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_is_queue_locked';
COMMENT ON FUNCTION pulse_internal.is_queue_locked(text) IS
  'Returns whether another transaction holds the queue''s lock, as a promotion does until it ends.';

CREATE OR REPLACE FUNCTION pulse_internal.queue_lock(
    queue_name text, OUT level text, OUT holder text)
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_queue_lock';
COMMENT ON FUNCTION pulse_internal.queue_lock(text) IS
  'Returns which level of a queue, or the queue itself, is locked, and by which transaction, as '
  'pg_locks.virtualtransaction names it; NULLs where is_queue_locked is false.';
