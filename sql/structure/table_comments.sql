-- The contents of the tables, columns and types of tables.sql and types.sql. Every upgrade replays
-- these comments, so the delta repeats none. docs/functions.md prints them.

COMMENT ON FUNCTION pulse_internal.queue_bucket(text) IS
  'Hashes a queue''s name to 0 to 8191 (FNV-1a): the hash bucket of the queue mark.';
COMMENT ON FUNCTION pulse_internal.parent_bucket(bigint) IS
  'Returns the hash bucket of a parent; the parent mark of the bucket tells that the parent may '
  'have ended.';
COMMENT ON FUNCTION pulse_internal.rows_changed() IS
  'Makes every session read this table again instead of the cached rows.';
COMMENT ON FUNCTION pulse_internal.skip_replicated() IS
  'Keeps a worker of a subscription from inserting a row.';
COMMENT ON TYPE pulse.job_state IS
  'States of a live job: ready (due or future, open to claims), parked (behind its queue) and '
  'running.';
COMMENT ON TYPE pulse.finished_state IS 'How a job ended.';
COMMENT ON TYPE pulse.job_spec IS
  'One job to add, an element of the argument of add_jobs. NULL takes the default that add_job '
  'has.';
COMMENT ON COLUMN pulse.job_spec.identifier IS 'Name of the task';
COMMENT ON COLUMN pulse.job_spec.payload IS 'Document that the task reads; NULL is an empty object';
COMMENT ON COLUMN pulse.job_spec.queue_name IS 'Named queue; NULL for none';
COMMENT ON COLUMN pulse.job_spec.run_at IS 'When the job falls due; NULL means now';
COMMENT ON COLUMN pulse.job_spec.max_attempts IS
  'Attempts of the job; NULL takes the number of the task';
COMMENT ON COLUMN pulse.job_spec.job_key IS 'Unique among waiting jobs; NULL for none';
COMMENT ON COLUMN pulse.job_spec.priority IS 'A lower number is claimed first; NULL means 0';
COMMENT ON COLUMN pulse.job_spec.flags IS '64 of 128 characters at most; for forbidden_flags';

COMMENT ON TYPE pulse.claimed_job IS
  'A job as a claim hands it to the worker, with the token that names the claim.';
COMMENT ON COLUMN pulse.claimed_job.token IS
  'Names this claim; each report about the job carries the token';
COMMENT ON COLUMN pulse.claimed_job.attempts IS 'Number of this attempt, from 1';
COMMENT ON COLUMN pulse.claimed_job.crashes IS 'Attempts that ended with the death of the worker';
COMMENT ON COLUMN pulse.claimed_job.checkpoint IS
  'Last checkpoint of an earlier attempt; NULL without one';
COMMENT ON COLUMN pulse.claimed_job.last_error IS 'Error of the last attempt that ended with one';
COMMENT ON COLUMN pulse.claimed_job.recovered IS
  'Why the last attempt was recovered: session, host, silence, timeout, stall, crash (of its '
  'program) or hand; NULL without a recovery';
COMMENT ON COLUMN pulse.claimed_job.timeout IS
  'Limit of this attempt since the claim; NULL means none';
COMMENT ON COLUMN pulse.claimed_job.stall_timeout IS
  'Limit between two progress reports; NULL means none';
COMMENT ON COLUMN pulse.claimed_job.on_unreachable IS
  'The worker''s action on the job while the database is out of reach: continue or kill';
COMMENT ON COLUMN pulse.claimed_job.handler IS
  'Function of this database that runs the job; NULL without one';
COMMENT ON COLUMN pulse.claimed_job.id IS 'Id of the job';
COMMENT ON COLUMN pulse.claimed_job.identifier IS 'Name of the task';
COMMENT ON COLUMN pulse.claimed_job.payload IS 'Document that the producer gave';
COMMENT ON COLUMN pulse.claimed_job.queue_name IS 'Named queue; NULL without one';
COMMENT ON COLUMN pulse.claimed_job.priority IS 'A lower number is claimed first';
COMMENT ON COLUMN pulse.claimed_job.run_at IS 'Time at which the job fell due';
COMMENT ON COLUMN pulse.claimed_job.max_attempts IS 'Attempts that the job has in all';
COMMENT ON COLUMN pulse.claimed_job.job_key IS 'Key of the job; NULL without one';
COMMENT ON COLUMN pulse.claimed_job.flags IS 'Flags of the job; NULL without any';
COMMENT ON COLUMN pulse.claimed_job.created_at IS 'When the job was added';
COMMENT ON COLUMN pulse.claimed_job.scheduled_for IS
  'Due time of the schedule that added the job; NULL for another job';
COMMENT ON COLUMN pulse.claimed_job.parents IS
  'How the parents of the job ended, as a JSON array; NULL without any such end on record';

COMMENT ON COLUMN pulse.claimed_job.traceparent IS
  'W3C traceparent of the job; NULL without a trace';

COMMENT ON TYPE pulse.job_outcome IS
  'The answer of a plural call for one job: accepted, stale (the claim is over) or busy (another '
  'transaction holds the job: call again).';
COMMENT ON COLUMN pulse.job_outcome.id IS 'Id of the job';
COMMENT ON COLUMN pulse.job_outcome.outcome IS 'accepted, stale or busy';
COMMENT ON TYPE pulse_internal.ending IS
  'How one attempt ends, an element of the argument of end_attempts.';
COMMENT ON TYPE pulse_internal.sweep_result IS 'The counts that a sweep returns.';
COMMENT ON TYPE pulse_internal.explanation IS
  'A reason why a job waits; explain_job() tells the columns.';

COMMENT ON TABLE pulse.job IS 'Live jobs: ready, parked behind their queue, or running.';
COMMENT ON COLUMN pulse.job.identifier IS 'Name of the task';
COMMENT ON COLUMN pulse.job.queue_name IS
  'Named queue, of which a limited number of jobs run at a time; NULL without one';
COMMENT ON COLUMN pulse.job.priority IS 'A lower number is claimed first';
COMMENT ON COLUMN pulse.job.run_at IS 'Time at which the job falls due';
COMMENT ON COLUMN pulse.job.attempts IS 'Attempts consumed, the running one included';
COMMENT ON COLUMN pulse.job.crashes IS 'Attempts that ended with the death of the worker';
COMMENT ON COLUMN pulse.job.job_key IS 'Unique among waiting jobs; NULL without one';
COMMENT ON COLUMN pulse.job.flags IS
  'A claim with one of these flags among its forbidden_flags leaves the job to other workers';
COMMENT ON COLUMN pulse.job.worker_id IS
  'Of a running job, the owner; of a ready job, the only worker that may run this poison suspect '
  '(see claim)';
COMMENT ON COLUMN pulse.job.token IS 'Names the current claim; NULL unless the job runs';
COMMENT ON COLUMN pulse.job.last_activity_at IS 'Last progress report, or the claim';
COMMENT ON COLUMN pulse.job.progress IS 'Reported fraction, 0 to 1';
COMMENT ON COLUMN pulse.job.checkpoint IS 'Reported by the task, handed to the next attempt';
COMMENT ON COLUMN pulse.job.last_error IS 'Error of the last attempt that ended with one';
COMMENT ON COLUMN pulse.job.recovered IS
  'Why the last attempt was recovered: session, host, silence, timeout, stall, crash (of its '
  'program) or hand; NULL without a recovery';
COMMENT ON COLUMN pulse.job.revision IS
  'Counts the changes by which attempts may have started again; 0 comes after 2147483647';
COMMENT ON COLUMN pulse.job.claimed_live_us IS 'The claim on the liveness clock, in microseconds';
COMMENT ON COLUMN pulse.job.activity_live_us IS
  'The last progress report or the claim on the liveness clock, in microseconds';
COMMENT ON COLUMN pulse.job.cancel_requested_at IS
  'Time at which cancel_job flagged the running job';
COMMENT ON COLUMN pulse.job.superseded IS
  '0.1.0 gave the key to another job while the job ran: the job does not run again';
COMMENT ON COLUMN pulse.job.in_place IS
  'The running job was claimed in place: claim_batch lists it, and no heartbeat has indexed it';
COMMENT ON COLUMN pulse.job.running_worker_id IS
  'Owner of a running job that is indexed as running';
COMMENT ON COLUMN pulse.job.index_lane IS
  'The index that has the job: o(pen): ready, or claimed in place; p(arked); w(aits for other '
  'jobs); r(unning): indexed as running; k(ey undecided). No index may use the state: a claim in '
  'place changes the state, and is a HOT update because no index has to follow';
COMMENT ON COLUMN pulse.job.id IS 'Id of the job; no id is used twice';
COMMENT ON COLUMN pulse.job.payload IS 'Document that the producer gave';
COMMENT ON COLUMN pulse.job.state IS 'ready, parked or running';
COMMENT ON COLUMN pulse.job.max_attempts IS 'Attempts that the job has in all';
COMMENT ON COLUMN pulse.job.claimed_at IS 'When a worker claimed the job; NULL unless the job runs';
COMMENT ON COLUMN pulse.job.stage IS 'Last stage that the task reported';
COMMENT ON COLUMN pulse.job.message IS 'Last message that the task reported';
COMMENT ON COLUMN pulse.job.created_at IS 'When the job was added';
COMMENT ON COLUMN pulse.job.updated_at IS 'When the job was last changed';
COMMENT ON COLUMN pulse.job.cancel_reason IS 'Reason that cancel_job was given';

COMMENT ON TABLE pulse.claim_batch IS
  'Claims in place whose jobs are not indexed as running: one row for up to 200 jobs of one '
  'claim.';
COMMENT ON COLUMN pulse.claim_batch.remaining_jobs IS
  'How many of the jobs complete_many() has not ended; other calls may have ended some of them';
COMMENT ON COLUMN pulse.claim_batch.worker_id IS 'Worker that claimed the jobs';
COMMENT ON COLUMN pulse.claim_batch.token IS 'The claim of the jobs';
COMMENT ON COLUMN pulse.claim_batch.job_ids IS 'The jobs that were claimed together';

COMMENT ON TABLE pulse.finished_job IS
  'Jobs that ended and are kept: all that did not complete, and completed jobs where '
  'keep_completed asks for a record.';
COMMENT ON COLUMN pulse.finished_job.worker_id IS
  'Owner of the last attempt; NULL if the job ended while waiting';
COMMENT ON COLUMN pulse.finished_job.token IS 'The claim that ended the job';
COMMENT ON COLUMN pulse.finished_job.result IS
  'Stored by complete(); NULL for a job that did not complete';
COMMENT ON COLUMN pulse.finished_job.id IS 'Id of the job';
COMMENT ON COLUMN pulse.finished_job.identifier IS 'Name of the task';
COMMENT ON COLUMN pulse.finished_job.payload IS 'Document that the producer gave';
COMMENT ON COLUMN pulse.finished_job.queue_name IS 'Named queue; NULL without one';
COMMENT ON COLUMN pulse.finished_job.priority IS 'A lower number was claimed first';
COMMENT ON COLUMN pulse.finished_job.run_at IS 'Time at which the last attempt was due';
COMMENT ON COLUMN pulse.finished_job.state IS
  'completed, failed, quarantined, cancelled or expired';
COMMENT ON COLUMN pulse.finished_job.attempts IS 'Attempts consumed';
COMMENT ON COLUMN pulse.finished_job.max_attempts IS 'Attempts that the job had in all';
COMMENT ON COLUMN pulse.finished_job.crashes IS
  'Attempts that ended with the death of the worker';
COMMENT ON COLUMN pulse.finished_job.job_key IS 'Key of the job; NULL without one';
COMMENT ON COLUMN pulse.finished_job.flags IS 'Flags of the job; NULL without any';
COMMENT ON COLUMN pulse.finished_job.claimed_at IS
  'When the last attempt was claimed; NULL if the job ended while waiting';
COMMENT ON COLUMN pulse.finished_job.checkpoint IS 'Last checkpoint that the task reported';
COMMENT ON COLUMN pulse.finished_job.last_error IS 'Error of the last attempt that ended with one';
COMMENT ON COLUMN pulse.finished_job.revision IS 'Revision of the job at the end; see job';
COMMENT ON COLUMN pulse.finished_job.created_at IS 'When the job was added';
COMMENT ON COLUMN pulse.finished_job.finished_at IS 'When the job ended';

COMMENT ON TABLE pulse.attempt IS
  'The audit trail: one row for each attempt that did not simply succeed, and one for each '
  'success whose job is kept. A snooze leaves none.';
COMMENT ON COLUMN pulse.attempt.attempt IS 'Number of the attempt, from 1';
COMMENT ON COLUMN pulse.attempt.outcome IS
  'How the attempt ended: completed, failed, lost, timed_out, stalled, interrupted, released or '
  'cancelled';
COMMENT ON COLUMN pulse.attempt.job_id IS 'Id of the job';
COMMENT ON COLUMN pulse.attempt.token IS 'The claim that began the attempt';
COMMENT ON COLUMN pulse.attempt.worker_id IS 'Worker that had the job';
COMMENT ON COLUMN pulse.attempt.claimed_at IS 'When the attempt began';
COMMENT ON COLUMN pulse.attempt.ended_at IS 'When the attempt ended';
COMMENT ON COLUMN pulse.attempt.error IS 'Why the attempt ended; NULL after a success';

COMMENT ON TABLE pulse.worker IS 'Registered workers, one row per process; no id is used twice.';
COMMENT ON COLUMN pulse.worker.boot_id IS 'Names this boot of the machine';
COMMENT ON COLUMN pulse.worker.process_start IS
  'Start of the process as the machine records it, which tells the process from a later one of the '
  'same pid';
COMMENT ON COLUMN pulse.worker.tasks IS
  'Tasks that the worker serves, as the worker told last; NULL means every task';
COMMENT ON COLUMN pulse.worker.sweep_threshold IS
  'Silence after which the worker is lost, as set when the worker registered';
COMMENT ON COLUMN pulse.worker.state IS
  'alive, draining (asked to drain or to stop), lost or stopped';
COMMENT ON COLUMN pulse.worker.reason IS
  'Why the worker ended; of a worker that drains or stops, who has asked it to, and when';
COMMENT ON COLUMN pulse.worker.info IS
  'Facts that the worker told last about itself and the machine';
COMMENT ON COLUMN pulse.worker.slots IS
  'How many jobs the worker runs at a time, as the worker told last; NULL: the worker did not tell';
COMMENT ON COLUMN pulse.worker.kill_grace IS
  'Within this time after a timeout or stall_timeout the worker ends the job itself, as the worker '
  'told last; NULL: the worker did not tell';
COMMENT ON COLUMN pulse.worker.version IS
  'Version of the worker, as the worker told last; NULL: the worker did not tell';
COMMENT ON COLUMN pulse.worker.id IS 'Id of the worker';
COMMENT ON COLUMN pulse.worker.name IS 'Name that the worker gave; several may share one';
COMMENT ON COLUMN pulse.worker.hostname IS 'Machine of the worker';
COMMENT ON COLUMN pulse.worker.pid_namespace IS 'Namespace to which the pid belongs';
COMMENT ON COLUMN pulse.worker.pid IS 'Id of the process';
COMMENT ON COLUMN pulse.worker.heartbeat_interval IS
  'Time between two heartbeats, as set when the worker registered';
COMMENT ON COLUMN pulse.worker.started_at IS 'When the worker registered';
COMMENT ON COLUMN pulse.worker.ended_at IS 'When the worker ended; NULL while the worker lives';

COMMENT ON TABLE pulse.heartbeat IS
  'The last heartbeat of each worker that has not ended, and the worker''s status in the same '
  'row.';
COMMENT ON COLUMN pulse.heartbeat.beat_live_us IS
  'The last heartbeat on the liveness clock, in microseconds';
COMMENT ON COLUMN pulse.heartbeat.verdict IS
  'The status that the next heartbeat tells the worker: alive, draining, stopping or lost';
COMMENT ON COLUMN pulse.heartbeat.interval_us IS
  'Interval of the worker''s heartbeats, in microseconds; 0: the worker lives exactly as long as '
  'the attached session';
COMMENT ON COLUMN pulse.heartbeat.threshold_us IS
  'Silence after which the worker is lost, in microseconds; the sweep uses the least threshold '
  'that its settings allow if that is longer';
COMMENT ON COLUMN pulse.heartbeat.attachment IS
  'Number of the session lock that stands for the attached session; NULL without one';
COMMENT ON COLUMN pulse.heartbeat.incarnation IS
  'The run of the server in which the worker attached';
COMMENT ON COLUMN pulse.heartbeat.detached_live_us IS
  'When the attached session ended, on the liveness clock in microseconds';
COMMENT ON COLUMN pulse.heartbeat.isolated_job_id IS
  'The poison suspect that this worker runs isolated, or is kept free for';
COMMENT ON COLUMN pulse.heartbeat.lost_cause IS
  'How the loss was noticed: session, host, silence or hand; returned: the worker has beaten '
  'since, and a sweep takes back the crashes that the loss counted';
COMMENT ON COLUMN pulse.heartbeat.default_timeout_us IS
  'pulse.default_timeout of the worker''s last claim, in microseconds; NULL: none';
COMMENT ON COLUMN pulse.heartbeat.missing_job_ids IS
  'Jobs that the last heartbeat did not name; the next heartbeat that also leaves them out ends '
  'their attempts';
COMMENT ON COLUMN pulse.heartbeat.worker_id IS 'Id of the worker';
COMMENT ON COLUMN pulse.heartbeat.last_heartbeat_at IS
  'When the last heartbeat came, on the clock of the server';
COMMENT ON COLUMN pulse.heartbeat.missing_tokens IS 'Claims of the jobs in missing_job_ids';

COMMENT ON TABLE pulse.clock IS
  'The liveness clock: accumulated live time and the moment of the tick that wrote the row. The '
  'greatest row counts.';
COMMENT ON COLUMN pulse.clock.vt_us IS 'Accumulated live time, in microseconds';
COMMENT ON COLUMN pulse.clock.slot IS
  'Number of the row; a tick writes one whose live time is least';
COMMENT ON COLUMN pulse.clock.last_tick IS 'When the clock last ticked';
COMMENT ON COLUMN pulse.clock.timeline IS 'Timeline of the last tick';

COMMENT ON TABLE pulse.queue IS
  'Settings of named queues. A queue without a row has the settings of the members of its level '
  '(''mail/*'' for ''mail/x'') if such settings are stored, else it runs one job at a time.';
COMMENT ON COLUMN pulse.queue.concurrency IS 'How many jobs of the queue run at a time';
COMMENT ON COLUMN pulse.queue.paused IS
  'A pause that version 0.1.0 stored, for the queue of that very name; others: queue_pause';
COMMENT ON COLUMN pulse.queue.queue_name IS 'Name of the queue';
COMMENT ON COLUMN pulse.queue.created_at IS 'When the queue got settings';
COMMENT ON COLUMN pulse.queue.updated_at IS 'When the settings last changed';
COMMENT ON COLUMN pulse.queue.total IS
  'How many jobs of the queue and of all queues within it run at a time; NULL: no limit';
COMMENT ON COLUMN pulse.queue.is_level IS
  'LEVEL/* stands for the members of the level; false where only version 0.1.0 has stored the row';
COMMENT ON COLUMN pulse.queue.is_strict IS
  'Once a job of the queue has been claimed, no other job starts before the claimed job has ended';
COMMENT ON COLUMN pulse.queue.on_dead IS
  'How a strict queue acts when a job ends failed, quarantined or expired: continue or pause';
COMMENT ON COLUMN pulse.queue.fair IS 'The queues within the level take turns to start jobs';
COMMENT ON COLUMN pulse.queue.weight IS
  'How many jobs the queue starts at a turn where a level above the queue is fair';
COMMENT ON COLUMN pulse.queue.rate IS
  'How many jobs of the queue and of all queues within it are claimed in each per; NULL: no limit';
COMMENT ON COLUMN pulse.queue.per IS 'The time in which rate jobs are claimed; NULL: 1 s';
COMMENT ON COLUMN pulse.queue.burst IS
  'How many of the jobs may be claimed at once after a pause; NULL: as many as rate';

COMMENT ON TABLE pulse.task IS 'Settings of tasks; NULL, or no row, takes the default.';
COMMENT ON COLUMN pulse.task.max_attempts IS 'Attempts of a job that is added without max_attempts';
COMMENT ON COLUMN pulse.task.timeout IS
  'Limit of an attempt since the claim; NULL takes the pulse.default_timeout of the claim';
COMMENT ON COLUMN pulse.task.stall_timeout IS 'Limit between two progress reports; NULL means none';
COMMENT ON COLUMN pulse.task.backoff IS
  'Wait before the next attempt: exponential, fixed or none; NULL means exponential';
COMMENT ON COLUMN pulse.task.backoff_base IS
  'Of exponential, the first wait, which doubles with each attempt, and NULL means exp(least(10, '
  'attempts)) seconds; of fixed, the wait, and NULL means 10 s';
COMMENT ON COLUMN pulse.task.backoff_cap IS 'Longest wait, before jitter; NULL means none';
COMMENT ON COLUMN pulse.task.jitter IS
  'Fraction, 0 to 1, by which a wait is lengthened or shortened at random; NULL means 0';
COMMENT ON COLUMN pulse.task.keep_completed IS
  'How long completed jobs are kept; NULL takes pulse.keep_completed';
COMMENT ON COLUMN pulse.task.max_crashes IS
  'Deaths of workers after which a job is quarantined; -1 means never, NULL takes '
  'pulse.max_crashes';
COMMENT ON COLUMN pulse.task.on_unreachable IS
  'A worker''s action on the task while the database is out of reach: continue or kill; NULL '
  'means continue';
COMMENT ON COLUMN pulse.task.handler IS
  'Full name of the function that runs the task; text, because pg_upgrade refuses a column of '
  'regprocedure';
COMMENT ON COLUMN pulse.task.expires_after IS
  'How long after run_at a new job may be claimed for the first time; NULL means always';
COMMENT ON COLUMN pulse.task.queue IS
  'Queue of a job that is added without a queue; {member} stands for a member of the payload';
COMMENT ON COLUMN pulse.task.dead_letter IS
  'Task of the job that the end of a job adds, where the job ends failed, quarantined or expired; '
  'NULL: no job is added';
COMMENT ON COLUMN pulse.task.identifier IS 'Name of the task';
COMMENT ON COLUMN pulse.task.created_at IS 'When the task got settings';
COMMENT ON COLUMN pulse.task.updated_at IS 'When the settings last changed';

COMMENT ON TABLE pulse.installation IS
  'The server, database and job table that the jobs belong to. Elsewhere the jobs are a copy: no '
  'worker claims a job before adopt_installation().';
COMMENT ON COLUMN pulse.installation.epoch_base IS
  'Added to the timeline in each token and worker id; above the epoch_base of all earlier '
  'installations';
COMMENT ON COLUMN pulse.installation.timeline IS 'The last timeline on which a number was made';
COMMENT ON COLUMN pulse.installation.moved_at IS
  'When the same tables were last found under another system identifier';
COMMENT ON COLUMN pulse.installation.id IS 'Names this installation';
COMMENT ON COLUMN pulse.installation.system_identifier IS 'Identifier of the server';
COMMENT ON COLUMN pulse.installation.database_oid IS 'Oid of the database';
COMMENT ON COLUMN pulse.installation.job_oid IS 'Oid of the table pulse.job';
COMMENT ON COLUMN pulse.installation.created_at IS 'When the first number was made here';
COMMENT ON COLUMN pulse.installation.id_floor IS
  'The least id of a job, flow or operation of this database: its shard * 2^44 + 1';
COMMENT ON COLUMN pulse.installation.id_ceiling IS
  'The greatest id of this database''s shard: (shard + 1) * 2^44 - 1';

COMMENT ON TABLE pulse.installation_witness IS
  'The installation that these files belong to; no dump contains it.';
COMMENT ON COLUMN pulse.installation_witness.installation_id IS 'Id of the installation';

COMMENT ON COLUMN pulse.job.scheduled_for IS
  'Due time of the schedule that added the job; NULL for another job';
COMMENT ON COLUMN pulse.job.start_by IS
  'The first claim must come by then, or the job expires; NULL means never, as for each job that '
  'was claimed';
COMMENT ON COLUMN pulse.job.waits_on IS
  'A live parent of the job, the highest; NULL when the job waits for no other job. See '
  'dependency';
COMMENT ON COLUMN pulse.job.starts_when IS
  'When the job starts: completed, ended or failed, as add_job_after was asked; NULL for a job '
  'that never waited for others';
COMMENT ON COLUMN pulse.job.succession IS
  'For strict queues: 1 once a job has been claimed and waits again, 2 after retry_job of one that '
  'ended failed, quarantined or expired; the lower one starts before all others. NULL: neither';
COMMENT ON COLUMN pulse.job.keeps_result IS
  'True when another job of the same flow waits for the job, so that the result is kept; else '
  'NULL';
COMMENT ON COLUMN pulse.job.parents IS
  'How the parents of the job ended, as a JSON array; NULL without any such end on record';
COMMENT ON COLUMN pulse.job.traceparent IS 'W3C traceparent of the job; NULL without a trace';
COMMENT ON COLUMN pulse.finished_job.traceparent IS
  'W3C traceparent of the job; NULL without a trace';
COMMENT ON COLUMN pulse.finished_job.starts_when IS
  'starts_when of a job that waited for others; else NULL';
COMMENT ON COLUMN pulse.finished_job.parents IS
  'parents of a job that started and did not complete, for a retry; else NULL';
COMMENT ON COLUMN pulse.finished_job.cancelled_by IS
  'Parent because of which the job was cancelled while it waited; NULL for any other end';
COMMENT ON TABLE pulse.dependency IS
  'Which jobs wait for which: rows of jobs that wait, and of jobs cancelled because of a parent. '
  'The view waiting_for has a row for each pair.';
COMMENT ON TABLE pulse.flow IS 'Jobs that add_flow added together.';
COMMENT ON COLUMN pulse.flow.id IS 'Id of the flow';
COMMENT ON COLUMN pulse.flow.name IS 'Name that the caller gave the flow; NULL without a name';
COMMENT ON COLUMN pulse.flow.created_at IS 'When the flow was added';
COMMENT ON TABLE pulse.flow_job IS 'Which jobs belong to which flow.';
COMMENT ON COLUMN pulse.flow_job.job_id IS 'The job';
COMMENT ON COLUMN pulse.flow_job.flow_id IS 'Flow of the job';
COMMENT ON COLUMN pulse.flow_job.key IS
  'Key of the job in the call of add_flow; NULL without a key';
COMMENT ON COLUMN pulse.dependency.child_id IS 'Job that waits';
COMMENT ON COLUMN pulse.dependency.parents_from IS
  'Multiple of 64: the row is for the 64 ids from parents_from on';
COMMENT ON COLUMN pulse.dependency.parents IS
  'Parents of the job among these ids, in ascending order';
COMMENT ON COLUMN pulse.dependency.parents_key IS
  'Finds the rows of a parent: the parent''s id, where the parent is alone in the row; else '
  'parents_from, negated';
COMMENT ON COLUMN pulse.finished_job.scheduled_for IS
  'Due time of the schedule that added the job; NULL for another job';
