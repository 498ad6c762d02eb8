// Written by test/docs/generate; do not edit.
import type { Database, FlowJob, Id, Interval, JobSpec, Unique } from '../types'

export type FinishedState =
  | 'completed'
  | 'failed'
  | 'quarantined'
  | 'cancelled'
  | 'expired'
export type JobState =
  | 'ready'
  | 'parked'
  | 'running'

export interface JobRow {
  /**
   * Id of the job; no id is used twice
   */
  id: string
  /**
   * Name of the task
   */
  identifier: string | null
  /**
   * Document that the producer gave
   */
  payload: unknown | null
  /**
   * Named queue, of which a limited number of jobs run at a time; NULL without one
   */
  queueName: string | null
  /**
   * A lower number is claimed first
   */
  priority: number | null
  /**
   * Time at which the job falls due
   */
  runAt: Date | null
  /**
   * ready, parked or running
   */
  state: JobState | null
  /**
   * Attempts consumed, the running one included
   */
  attempts: number | null
  /**
   * Attempts that the job has in all
   */
  maxAttempts: number | null
  /**
   * Attempts that ended with the death of the worker
   */
  crashes: number | null
  /**
   * Unique among waiting jobs; NULL without one
   */
  jobKey: string | null
  /**
   * A claim with one of these flags among its forbidden_flags leaves the job to other workers
   */
  flags: string[] | null
  /**
   * Of a running job, the owner; of a ready job, the only worker that may run this poison suspect
   * (see claim)
   */
  workerId: string | null
  /**
   * Names the current claim; NULL unless the job runs
   */
  token: string | null
  /**
   * When a worker claimed the job; NULL unless the job runs
   */
  claimedAt: Date | null
  /**
   * Last progress report, or the claim
   */
  lastActivityAt: Date | null
  /**
   * Last stage that the task reported
   */
  stage: string | null
  /**
   * Reported fraction, 0 to 1
   */
  progress: number | null
  /**
   * Last message that the task reported
   */
  message: string | null
  /**
   * Reported by the task, handed to the next attempt
   */
  checkpoint: unknown | null
  /**
   * Error of the last attempt that ended with one
   */
  lastError: string | null
  /**
   * Why the last attempt was recovered: session, host, silence, timeout, stall, crash (of its
   * program) or hand; NULL without a recovery
   */
  recovered: string | null
  /**
   * Counts the changes by which attempts may have started again; 0 comes after 2147483647
   */
  revision: number | null
  /**
   * When the job was added
   */
  createdAt: Date | null
  /**
   * When the job was last changed
   */
  updatedAt: Date | null
  /**
   * Time at which cancel_job flagged the running job
   */
  cancelRequestedAt: Date | null
  /**
   * Reason that cancel_job was given
   */
  cancelReason: string | null
  /**
   * Due time of the schedule that added the job; NULL for another job
   */
  scheduledFor: Date | null
  /**
   * The first claim must come by then, or the job expires; NULL means never, as for each job that
   * was claimed
   */
  startBy: Date | null
  /**
   * When the job starts: completed, ended or failed, as add_job_after was asked; NULL for a job
   * that never waited for others
   */
  startsWhen: string | null
  /**
   * How the parents of the job ended, as a JSON array; NULL without any such end on record
   */
  parents: unknown | null
  /**
   * W3C traceparent of the job; NULL without a trace
   */
  traceparent: string | null
  /**
   * The producer of the job: the role that has added it, or that stored its schedule; NULL: every
   * producer
   */
  addedBy: string | null
  /**
   * The job that died, of a job that is a dead letter; NULL for any other job
   */
  deadLetterOf: string | null
}

export interface OperationRow {
  /**
   * Id of the operation
   */
  id: string
  /**
   * retry, cancel, reschedule, fail or undo; or the action that note_operation() was told
   */
  action: string | null
  /**
   * Which jobs, as the caller of start_operation() told
   */
  filter: unknown | null
  /**
   * Arguments of the action
   */
  arguments: unknown | null
  /**
   * Name that the caller gave for the person or token behind the call; NULL without a name
   */
  actor: string | null
  /**
   * Role that started the operation
   */
  role: string | null
  /**
   * running (steps are left), done, or stopped before the last step
   */
  state: string | null
  /**
   * Jobs with a higher id were added later, and are left alone
   */
  lastId: string | null
  /**
   * The last id that the last step checked
   */
  checkedTo: string | null
  /**
   * How many jobs the operation has changed
   */
  changed: string | null
  /**
   * How many jobs of the filter the operation left alone: another transaction held the job,
   * another job had the key, the job had no attempt left, or the job had moved since
   */
  skipped: string | null
  /**
   * The operation that this operation takes back
   */
  undoes: string | null
  /**
   * How many jobs were left alone, by reason; NULL without any
   */
  skippedBecause: unknown | null
  /**
   * When the operation was started
   */
  createdAt: Date | null
  /**
   * When the last step of the operation ran
   */
  updatedAt: Date | null
  /**
   * When the operation was done or stopped; NULL before
   */
  endedAt: Date | null
}

export interface QueueRow {
  /**
   * Name of the queue
   */
  queueName: string | null
  /**
   * How many jobs of the queue run at a time
   */
  concurrency: number | null
  /**
   * A pause that version 0.1.0 stored, for the queue of that very name; others: queue_pause
   */
  paused: boolean | null
  /**
   * When the queue got settings
   */
  createdAt: Date | null
  /**
   * When the settings last changed
   */
  updatedAt: Date | null
  /**
   * How many jobs of the queue and of all queues within it run at a time; NULL: no limit
   */
  total: number | null
  /**
   * LEVEL/* stands for the members of the level; false where only version 0.1.0 has stored the
   * row
   */
  isLevel: boolean | null
  /**
   * Once a job of the queue has been claimed, no other job starts before the claimed job has
   * ended
   */
  isStrict: boolean | null
  /**
   * How a strict queue acts when a job ends failed, quarantined or expired: continue or pause
   */
  onDead: string | null
  /**
   * The queues within the level take turns to start jobs
   */
  fair: boolean | null
  /**
   * How many jobs the queue starts at a turn where a level above the queue is fair
   */
  weight: number | null
  /**
   * How many jobs of the queue and of all queues within it are claimed in each per; NULL: no
   * limit
   */
  rate: number | null
  /**
   * The time in which rate jobs are claimed; NULL: 1 s
   */
  per: string | null
  /**
   * How many of the jobs may be claimed at once after a pause; NULL: as many as rate
   */
  burst: number | null
}

export interface ScheduleRow {
  /**
   * Name of the schedule
   */
  name: string | null
  /**
   * Task of the schedule's jobs
   */
  identifier: string | null
  /**
   * Cron rule; NULL for an elapsed time
   */
  cron: string | null
  /**
   * Elapsed time between due times; NULL for a cron rule
   */
  every: string | null
  /**
   * Zone in which a cron rule is read
   */
  timeZone: string | null
  /**
   * When the rule was given: due times of an elapsed time count from the anchor
   */
  anchor: Date | null
  /**
   * Payload of the schedule's jobs
   */
  payload: unknown | null
  /**
   * Named queue of the schedule's jobs; NULL: none
   */
  queueName: string | null
  /**
   * Attempts of the schedule's jobs; NULL: as add_job
   */
  maxAttempts: number | null
  /**
   * Priority of the schedule's jobs; NULL: 0
   */
  priority: number | null
  /**
   * Flags of the schedule's jobs; NULL: none
   */
  flags: string[] | null
  /**
   * Key of the schedule's jobs; NULL: none
   */
  jobKey: string | null
  /**
   * replace, preserve_run_at or unsafe_dedupe
   */
  jobKeyMode: string | null
  /**
   * Jobs for due times at which no session swept: skip, once or all
   */
  missed: string | null
  /**
   * With all: a due time that is older than this gets no job
   */
  missedFor: string | null
  /**
   * Action of a due time while the job before waits or runs: allow, skip or replace
   */
  overlap: string | null
  /**
   * The schedule adds no jobs
   */
  paused: boolean | null
  /**
   * The first due time that is not settled
   */
  nextDue: Date | null
  /**
   * The last settled due time
   */
  lastDue: Date | null
  /**
   * Last job that a due time added
   */
  lastJobId: string | null
  /**
   * Due times without a job: missed or refused
   */
  missedCount: string | null
  /**
   * Due times without a job because the job before still waited or ran
   */
  overlappedCount: string | null
  /**
   * Why the last refused job was refused
   */
  lastError: string | null
  /**
   * Due time of the last refused job
   */
  lastErrorAt: Date | null
  /**
   * The crontab that names the schedule; NULL: schedule() made it
   */
  crontabSet: string | null
  /**
   * Since when the crontab names the schedule no more
   */
  goneAt: Date | null
  /**
   * Whether the schedule was paused when the crontab left it out
   */
  pausedBefore: boolean | null
  /**
   * When the schedule was created
   */
  createdAt: Date | null
  /**
   * When a call changed the schedule
   */
  updatedAt: Date | null
  /**
   * The role that stored the schedule, and the producer of its jobs; NULL: every producer
   */
  addedBy: string | null
  /**
   * When the schedule was paused; NULL while the schedule runs
   */
  pausedAt: Date | null
  /**
   * The role that has paused the schedule, or loaded its crontab
   */
  pausedBy: string | null
}

export interface TaskRow {
  /**
   * Name of the task
   */
  identifier: string | null
  /**
   * Attempts of a job that is added without max_attempts
   */
  maxAttempts: number | null
  /**
   * Limit of an attempt since the claim; NULL takes the pulse.default_timeout of the claim
   */
  timeout: string | null
  /**
   * Limit between two progress reports; NULL means none
   */
  stallTimeout: string | null
  /**
   * Wait before the next attempt: exponential, fixed or none; NULL means exponential
   */
  backoff: string | null
  /**
   * Of exponential, the first wait, which doubles with each attempt, and NULL means exp(least(10,
   * attempts)) seconds; of fixed, the wait, and NULL means 10 s
   */
  backoffBase: string | null
  /**
   * Longest wait, before jitter; NULL means none
   */
  backoffCap: string | null
  /**
   * Fraction, 0 to 1, by which a wait is lengthened or shortened at random; NULL means 0
   */
  jitter: number | null
  /**
   * How long completed jobs are kept; NULL takes pulse.keep_completed
   */
  keepCompleted: string | null
  /**
   * Deaths of workers after which a job is quarantined; -1 means never, NULL takes
   * pulse.max_crashes
   */
  maxCrashes: number | null
  /**
   * A worker's action on the task while the database is out of reach: continue or kill; NULL
   * means continue
   */
  onUnreachable: string | null
  /**
   * Full name of the function that runs the task; text, because pg_upgrade refuses a column of
   * regprocedure
   */
  handler: string | null
  /**
   * When the task got settings
   */
  createdAt: Date | null
  /**
   * When the settings last changed
   */
  updatedAt: Date | null
  /**
   * How long after run_at a new job may be claimed for the first time; NULL means always
   */
  expiresAfter: string | null
  /**
   * Queue of a job that is added without a queue; {member} stands for a member of the payload
   */
  queue: string | null
  /**
   * Task of the job that the end of a job adds, where the job ends failed, quarantined or
   * expired; NULL: no job is added
   */
  deadLetter: string | null
}

export interface AddFlowRow {
  key: string | null
  id: string
  flowId: string | null
}

export interface AddJobOnceRow {
  id: string
  isNew: boolean | null
  state: string | null
}

export interface AddJobForRequestRow {
  outcome: string | null
  jobId: string | null
  jobState: string | null
  jobRunAt: Date | null
}

export interface EndedRow {
  id: string
  state: FinishedState | null
  result: unknown | null
  lastError: string | null
  finishedAt: Date | null
}

export interface LoadCrontabRow {
  name: string | null
  change: string | null
}

export interface OperationActionsRow {
  action: string | null
  states: string[] | null
  usualStates: string[] | null
}

export interface PreviewOperationRow {
  jobs: string | null
  isExact: boolean | null
  sampleIds: string[] | null
}

export interface ImportGraphileWorkerRow {
  what: string | null
  outcome: string | null
  jobs: string | null
  detail: string | null
}

/**
 * Adds a job in the caller's transaction, and returns the row. NULL takes the default: for run_at
 * the time of the transaction, for max_attempts the number of the task, for priority 0. With a
 * job_key, a waiting job of the same key is replaced (replace), is replaced but keeps its run_at
 * (preserve_run_at), or stays unchanged (dedupe, or unsafe_dedupe). A role that may not read
 * pulse.job sees neither payload nor token nor worker of an older job. Raises PU004 for a name or
 * value out of range, 42501 for a job_key under which a job of another producer lives, and 40001
 * for a job_key that another session took after a REPEATABLE READ or SERIALIZABLE transaction had
 * begun: repeat the transaction.
 */
export function addJob(
  db: Database,
  identifier: string,
  payload: unknown,
  options: {
    queueName?: string | null
    runAt?: Date | string | null
    maxAttempts?: number | null
    jobKey?: string | null
    priority?: number | null
    flags?: string[] | null
    jobKeyMode?: string | null
    unique: Unique
  },
): Promise<AddJobOnceRow>
/**
 * Adds a job in the caller's transaction, and returns the row. NULL takes the default: for run_at
 * the time of the transaction, for max_attempts the number of the task, for priority 0. With a
 * job_key, a waiting job of the same key is replaced (replace), is replaced but keeps its run_at
 * (preserve_run_at), or stays unchanged (dedupe, or unsafe_dedupe). A role that may not read
 * pulse.job sees neither payload nor token nor worker of an older job. Raises PU004 for a name or
 * value out of range, 42501 for a job_key under which a job of another producer lives, and 40001
 * for a job_key that another session took after a REPEATABLE READ or SERIALIZABLE transaction had
 * begun: repeat the transaction.
 */
export function addJob(
  db: Database,
  identifier: string,
  payload?: unknown,
  options?: {
    queueName?: string | null
    runAt?: Date | string | null
    maxAttempts?: number | null
    jobKey?: string | null
    priority?: number | null
    flags?: string[] | null
    jobKeyMode?: string | null
    unique?: Unique
  },
): Promise<JobRow>

/**
 * Adds a job as add_job does, and lets it wait until the jobs of these ids have ended; returns
 * the row. starts_when: completed (all did; else the new job ends as cancelled), ended (in
 * whatever way) or failed (at least one did not complete; else the new job ends as cancelled, not
 * needed). start_by: the job ends as expired unless a claim takes it in time. {} waits for
 * nothing. An id whose job no longer has a row counts as completed; the call waits for a
 * transaction that deletes or retries an ended parent. Raises PU004 for a name or value out of
 * range and for a job that would wait for itself, 42501 and 40001 as add_job does, PU005 for an
 * id never given out or lost in a failover, for a parent that an open transaction adds, and for a
 * job of another producer.
 */
export function addJobAfter(
  db: Database,
  after: Id[],
  identifier: string,
  payload?: unknown,
  options?: {
    queueName?: string | null
    runAt?: Date | string | null
    maxAttempts?: number | null
    jobKey?: string | null
    priority?: number | null
    flags?: string[] | null
    jobKeyMode?: string | null
    startsWhen?: string | null
    startBy?: Date | string | null
  },
): Promise<JobRow>

/**
 * Adds jobs that wait for each other, in the caller's transaction, and returns the id of each, in
 * the order of the array. jobs: an array of objects with the arguments of add_job_after; in after
 * stand keys of jobs of the flow, in any order, and ids of other jobs, as numbers. key: a string,
 * which a job needs that others name. flow_name: for the view flows, at most 512 characters.
 * Raises PU004 for a value out of range, an unknown member or key, and jobs that wait for each
 * other, 42501 and 40001 as add_job does, PU005 for an id never given out, lost in a failover or
 * not committed, and for a job of another producer.
 */
export function addFlow(
  db: Database,
  jobs: FlowJob[],
  options?: {
    flowName?: string | null
  },
): Promise<AddFlowRow[]>

/**
 * Lets a job that no worker has claimed wait for more jobs. This transaction must have added the
 * parents, and no parent may wait for a job older than the waiting job. So a running job of a
 * batch adds members to the last job of the batch. Raises PU004 for any other job, PU005 for an
 * unknown job and for a job of another producer.
 */
export function addDependency(
  db: Database,
  jobId: Id,
  after: Id[],
): Promise<void>

/**
 * Adds many jobs in the caller's transaction, and returns the rows in the same order. Of two jobs
 * with one key the last wins; payloads that are arrays are concatenated. job_key_preserve_run_at
 * => true keeps the run_at of a replaced job. Raises PU004 for a name or value out of range,
 * 42501 and 40001 as add_job does.
 */
export function addJobs(
  db: Database,
  specs: JobSpec[],
  options?: {
    jobKeyPreserveRunAt?: boolean | null
  },
): Promise<JobRow[]>

/**
 * Adds a job as add_job does, unless a job of this task and unique_key was added less than
 * unique_for (1 ms to 10 years; a day is 24 hours) before: then returns that job, with is_new
 * false. The period lasts from created_at of the first job, whatever becomes of that job; its own
 * unique_for counts. states narrows that: a first job in none of these states (waiting, running,
 * completed, failed, cancelled, quarantined, expired) is forgotten, and the new job is
 * remembered. state: of the job; a job without a record counts as completed. While another
 * transaction adds under the key, the call waits for the end of that transaction. Raises PU004
 * for a name or value out of range, 42501 where another producer has the key, and 40001 where
 * another session took the key after a REPEATABLE READ or SERIALIZABLE transaction had begun:
 * repeat the transaction.
 */
export function addJobOnce(
  db: Database,
  uniqueFor: Interval,
  uniqueKey: string,
  identifier: string,
  payload?: unknown,
  options?: {
    queueName?: string | null
    runAt?: Date | string | null
    maxAttempts?: number | null
    priority?: number | null
    flags?: string[] | null
    states?: string[] | null
  },
): Promise<AddJobOnceRow>

/**
 * Ends the period of a key of add_job_once, so that the next add under the key is new; leaves the
 * job as it is. Returns whether the key had a period that was not over. Raises 42501 where
 * another producer has the key.
 */
export function forgetOnce(
  db: Database,
  identifier: string,
  uniqueKey: string,
): Promise<boolean>

/**
 * Adds a job as add_job does, once for each idempotency_key of this client of the calling role
 * (names and key of at most 255 characters), and notes the key in the same transaction for as
 * long as pulse.keep_idempotency_keys says. outcome: added; replayed, with the values that the
 * first call returned, also when the job has ended; other_request, where the key was given with
 * another request_hash; in_progress, where another transaction adds under the key and has not
 * ended within a second. Raises the errors of add_job, and PU004 for a name, key or hash that is
 * NULL, empty or too long.
 */
export function addJobForRequest(
  db: Database,
  client: string,
  idempotencyKey: string,
  requestHash: string,
  identifier: string,
  payload?: unknown,
  options?: {
    queueName?: string | null
    runAt?: Date | string | null
    maxAttempts?: number | null
    jobKey?: string | null
    priority?: number | null
    flags?: string[] | null
    jobKeyMode?: string | null
  },
): Promise<AddJobForRequestRow>

/**
 * Deletes the waiting job of this key, and returns the row; if other jobs wait for it, the job
 * ends as cancelled instead. A running job loses the key and is not retried. Returns NULL for a
 * key that no job of the caller's producer has. A role that may not read pulse.job sees neither
 * payload nor token nor worker of the job. Raises 40001 as add_job does.
 */
export function removeJob(
  db: Database,
  jobKey: string,
): Promise<JobRow | null>

/**
 * Returns when all of these jobs have ended, with any_of => true when one job has ended, or after
 * max_wait (at most 1 day). ended: how many jobs have ended, in whatever way; a job without a row
 * has ended, unless a transaction in progress adds the job. Holds no snapshot and no transaction
 * id during the wait. Raises PU004 for a value out of range and for more than 10,000 ids, PU005
 * for an id never given out or lost in a failover, PU006 inside a transaction block, 25006 on a
 * standby.
 */
export function waitForEnd(
  db: Database,
  jobIds: Id[],
  options?: {
    maxWait?: Interval | null
    anyOf?: boolean | null
  },
): Promise<number>

/**
 * Returns how each of these jobs ended, in the order of the ids; leaves out jobs that have not
 * ended or are not kept. Completed jobs are kept where keep_completed of the task or the server
 * says so; all other jobs as long as pulse.keep_failed says. Raises PU005 for an id lost in a
 * failover, 25006 on a standby.
 */
export function ended(
  db: Database,
  jobIds: Id[],
): Promise<EndedRow[]>

/**
 * Stores a schedule, which adds a job of the task identifier at each due time, and returns the
 * schedule. Give cron (five fields as in crontab(5), or @hourly to @yearly, in time_zone; NULL
 * means UTC) or every (elapsed time, at least 1 s). The arguments from payload to job_key_mode
 * are as in add_job. missed is for due times at which no session swept: skip, once (one job for
 * all), all (each due time that is at most missed_for old). overlap is for a due time at which
 * the job before still waits or runs: allow, skip, replace (a waiting job). A call with the same
 * rule and time_zone keeps the phase and changes the rest; another rule starts from now. paused:
 * NULL leaves the pause unchanged. Raises PU004 for a value out of range.
 */
export function schedule(
  db: Database,
  name: string,
  identifier: string,
  options?: {
    cron?: string | null
    every?: Interval | null
    payload?: unknown | null
    timeZone?: string | null
    queueName?: string | null
    maxAttempts?: number | null
    priority?: number | null
    flags?: string[] | null
    jobKey?: string | null
    jobKeyMode?: string | null
    missed?: string | null
    missedFor?: Interval | null
    overlap?: string | null
    paused?: boolean | null
  },
): Promise<ScheduleRow>

/**
 * Deletes a schedule, and returns whether there was one. Jobs that the schedule has added stay.
 */
export function unschedule(
  db: Database,
  name: string,
): Promise<boolean>

/**
 * Stops a schedule from adding jobs until resume_schedule. Due times that have passed, and that
 * no sweep has settled, count as missed; due times during the pause are not counted. A role that
 * may not read pulse.schedule sees no payload. Raises PU005 for an unknown schedule.
 */
export function pauseSchedule(
  db: Database,
  name: string,
): Promise<ScheduleRow | null>

/**
 * Starts a schedule from now: the next due time is the first in the future, whatever the schedule
 * has settled. A role that may not read pulse.schedule sees no payload. Raises PU005 for an
 * unknown schedule.
 */
export function resumeSchedule(
  db: Database,
  name: string,
): Promise<ScheduleRow | null>

/**
 * Adds the job of a schedule at once and returns it, whether or not the schedule is paused. The
 * job has no scheduled_for. The call moves no due time and does not ask overlap. A role that may
 * not read pulse.job sees no payload. Raises PU005 for an unknown schedule.
 */
export function runScheduleNow(
  db: Database,
  name: string,
): Promise<JobRow | null>

/**
 * Returns the first max_runs (1 to 100000) due times of a schedule later than after, as if the
 * schedule were not paused. NULL means now, or the last due time if the clock was set back before
 * that due time. Raises PU004 for max_runs or after out of range, PU005 for an unknown schedule.
 */
export function nextRuns(
  db: Database,
  name: string,
  options?: {
    maxRuns?: number | null
    after?: Date | string | null
  },
): Promise<Date[]>

/**
 * Returns the first max_runs (1 to 100000) due times of a cron rule later than after; NULL means
 * now. Raises PU004 for a text that is no rule, for a rule that no day of eight years matches,
 * and for an unknown time zone.
 */
export function cronRuns(
  db: Database,
  cron: string,
  options?: {
    timeZone?: string | null
    maxRuns?: number | null
    after?: Date | string | null
  },
): Promise<Date[]>

/**
 * Makes the schedules of a crontab equal to items: an array of objects with name, identifier and
 * cron (in UTC), and if wanted payload (an object), fill (an interval: missed due times of so
 * long are made up for), queue_name, max_attempts, priority, job_key, job_key_mode. Schedules of
 * this set that items does not name are paused, and deleted a day later unless a call names them
 * again. Returns each name with added, changed, resumed, paused or unchanged. pulse-worker
 * --crontab calls the function. Raises PU004 for a value out of range, a name given twice, and a
 * schedule that is not of this set.
 */
export function loadCrontab(
  db: Database,
  setName: string,
  items: unknown,
): Promise<LoadCrontabRow[]>

/**
 * Stores settings of a task and returns all settings; NULL leaves a setting unchanged. The table
 * pulse.task describes each setting. queue is for later jobs that are added without a queue:
 * {member} stands for a string or number of the payload, {member|default} for a member that may
 * be missing, and '' takes the queue away. dead_letter is the task of the job that is added when
 * a job of this task ends failed, quarantined or expired, and '' takes the setting away. Raises
 * PU004 for a value out of range and for a handler that cannot take a job, 42501 for a new
 * handler that the caller may not execute.
 */
export function setTask(
  db: Database,
  identifier: string,
  options?: {
    maxAttempts?: number | null
    timeout?: Interval | null
    stallTimeout?: Interval | null
    backoff?: string | null
    backoffBase?: Interval | null
    backoffCap?: Interval | null
    jitter?: number | null
    keepCompleted?: Interval | null
    maxCrashes?: number | null
    onUnreachable?: string | null
    handler?: string | null
    expiresAfter?: Interval | null
    queue?: string | null
    deadLetter?: string | null
  },
): Promise<TaskRow>

/**
 * Takes all settings of a task away, the handler too, and returns whether the task had any. From
 * then on the task has the defaults. Jobs keep the values that they got when added: max_attempts,
 * start_by and queue. Raises PU004 as set_task does.
 */
export function unsetTask(
  db: Database,
  identifier: string,
): Promise<boolean>

/**
 * Stores settings of a queue and returns the settings that hold for it; NULL leaves a setting
 * unchanged, -1 takes a limit away. concurrency (1 to 1000000) is how many jobs of exactly this
 * name run at a time; total, how many jobs of the queue and of all queues within it: mail/x is
 * within mail. Of the same jobs, rate (1 to 1000000) are claimed in each per (1 s to 366 days, of
 * 24 hours; 1 s), and burst (as many as rate) at once. paused => true calls pause_queue, false
 * resume_queue, of any queue; without another argument no setting is stored. Where a level is
 * fair the queues within the level, however deep, take turns to start jobs, and weight (1 to
 * 1000) is how many jobs a queue starts in a turn. The outermost fair level gives the turns; fair
 * and weight of a level between do nothing, which a notice tells. The name mail/* stands for the
 * members of mail that have no settings of their own; the weight of mail/* holds for deeper
 * queues too, unless a nearer level has settings of members. Running jobs go on. A strict queue
 * runs one job at a time: once a job has been claimed, no other job starts before that job has
 * ended, whatever retries the job has. on_dead says how a strict queue acts when a job ends
 * failed, quarantined or expired: continue, or pause, which resume_queue ends. Raises PU004 for a
 * value out of range, a name of more than four levels, a strict queue of another concurrency than
 * 1, on_dead pause without strict, and per or burst without rate.
 */
export function setQueue(
  db: Database,
  queueName: string,
  options?: {
    concurrency?: number | null
    paused?: boolean | null
    total?: number | null
    rate?: number | null
    per?: Interval | null
    burst?: number | null
    fair?: boolean | null
    weight?: number | null
    strict?: boolean | null
    onDead?: string | null
  },
): Promise<QueueRow>

/**
 * Takes away all settings of a queue and its pause, and returns whether it had any. From then on
 * it has the settings of the members of its level (mail/* for mail/x) if such settings are
 * stored, else it runs one job at a time. Running jobs go on. Raises PU004 as set_queue does.
 */
export function unsetQueue(
  db: Database,
  queueName: string,
): Promise<boolean>

/**
 * Pauses a queue and all queues within it, and returns the settings that hold for the queue,
 * which stay: once the call commits, no worker claims a job of the queues before resume_queue.
 * The name mail/* stands for the direct members of mail that no operator paused or resumed by
 * name. Running jobs go on. A notice says if the queue has neither settings nor jobs. Raises
 * PU004 as set_queue does.
 */
export function pauseQueue(
  db: Database,
  queueName: string,
): Promise<QueueRow | null>

/**
 * Ends the pause of a queue, also a pause that the end of a job began, and returns the settings
 * that hold for the queue, which stay. Raises PU005 for a queue that has no settings of its own
 * and was not paused.
 */
export function resumeQueue(
  db: Database,
  queueName: string,
): Promise<QueueRow | null>

/**
 * Cancels a job. A waiting job ends at once. A running job is flagged, and each heartbeat tells
 * the worker; if the job completes first, the completion wins, and any other end is recorded as
 * cancelled. Returns cancelled, running (flagged), or the state in which the job had already
 * ended: completed also where the job has no row, and its flow, a job that waits for it or its
 * schedule knows of the completion. Raises PU005 for an unknown job, 55P03 where another
 * transaction, as a producer's keyed add, holds the job for more than a second: then nothing has
 * changed.
 */
export function cancelJob(
  db: Database,
  jobId: Id,
  options?: {
    reason?: string | null
  },
): Promise<string>

/**
 * Cancels each live job of a flow as cancel_job does, and returns the number of cancelled jobs.
 * Jobs outside of the flow follow the jobs that they wait for. Raises PU005 for an unknown flow,
 * 55P03 where cancel_job raises it for a job of the flow: then no job is cancelled.
 */
export function cancelFlow(
  db: Database,
  flowId: Id,
  options?: {
    reason?: string | null
  },
): Promise<number>

/**
 * Makes a job that ended without completing live again, due at once, with its id, its checkpoint
 * and all attempts, and returns the job; a start_by in the past is taken away. A job that is
 * still live is returned unchanged, with a notice. Raises PU005 for an unknown job, PU010 for a
 * completed job, while another live job has the key, and while a transaction in progress adds or
 * removes a job under the key, 55P03 where another transaction, as one that adds a job after this
 * job, holds the record for more than a second.
 */
export function retryJob(
  db: Database,
  jobId: Id,
): Promise<JobRow | null>

/**
 * Takes a running job from its worker, whose token is void from then on. The call consumes the
 * attempt and counts no crash; the job is ready again at once, or failed after the last attempt.
 * Returns false for a job that does not run. Raises PU005 for an unknown job, 55P03 where another
 * transaction holds the job for more than a second.
 */
export function requeueJob(
  db: Database,
  jobId: Id,
  reason: string,
): Promise<boolean>

/**
 * Changes waiting and failed jobs and returns them; NULL leaves a value unchanged. A failed job
 * that gets an attempt again, by attempts or max_attempts, goes live again; any other failed job
 * stays failed and has a state of NULL. Running, quarantined, cancelled and expired jobs, failed
 * jobs whose key a live job has, and jobs locked by another transaction, are left alone, with a
 * notice. Ids of no job, and NULL, name no job. A job keeps its start_by. Raises PU004 for a
 * value out of range, for a waiting job that would be left without an attempt and for a failed
 * job that would have used more attempts than max_attempts, PU005 for an id lost in a failover.
 */
export function rescheduleJobs(
  db: Database,
  jobIds: Id[],
  options?: {
    runAt?: Date | string | null
    priority?: number | null
    attempts?: number | null
    maxAttempts?: number | null
  },
): Promise<JobRow[]>

/**
 * Completes waiting and failed jobs by hand and returns them as they were, failed jobs with a
 * state of NULL. keep_completed decides whether they are kept. Running, quarantined, cancelled
 * and expired jobs, and jobs locked by another transaction, are left alone, with a notice. Ids of
 * no job, and NULL, name no job. Raises PU005 for an id lost in a failover.
 */
export function completeJobs(
  db: Database,
  jobIds: Id[],
): Promise<JobRow[]>

/**
 * Ends waiting jobs as failed and returns the jobs; failed jobs get the new message, and have a
 * state of NULL. error_message becomes the last_error; NULL stands for "Manually marked as
 * failed". Running, quarantined, cancelled and expired jobs, and jobs locked by another
 * transaction, are left alone, with a notice. Ids of no job, and NULL, name no job. Raises PU005
 * for an id lost in a failover.
 */
export function permanentlyFailJobs(
  db: Database,
  jobIds: Id[],
  options?: {
    errorMessage?: string | null
  },
): Promise<JobRow[]>

/**
 * Returns the actions of start_operation(), the states of the jobs that each action may change,
 * and the states that the action changes where a filter names neither states nor ids.
 */
export function operationActions(
  db: Database,
): Promise<OperationActionsRow[]>

/**
 * Returns how many jobs an operation would be about, and the first 20 jobs; changes nothing. The
 * function reads 110,000 ended jobs at most, or 80,000 live jobs; for error and error_line
 * 20,000, with 8 MB of errors: is_exact is false where there may be more, and jobs then counts
 * only the jobs found. action and filter: as for start_operation(). Raises PU004 and PU005 as
 * start_operation() does.
 */
export function previewOperation(
  db: Database,
  action: string,
  filter: unknown,
): Promise<PreviewOperationRow | null>

/**
 * Notes that an operator is about to change many jobs, and returns the operation; run_operation()
 * makes the changes. action: retry (failed and quarantined jobs), cancel, reschedule or fail
 * (waiting jobs). filter: conditions, all of which a job must meet: states, task, queue, key,
 * error (a part of the last error), error_line (of the last error, as list_failures() returns
 * it), ids, older_than and newer_than (by the time of the add). {} means every job. arguments:
 * reason of cancel, error of fail, run_at, priority, attempts and max_attempts of reschedule.
 * Jobs added later are left alone. actor: for the record, the person or program behind the role,
 * at most 128 characters. Raises PU004 for anything else, PU005 for an id lost in a failover.
 */
export function startOperation(
  db: Database,
  action: string,
  filter: unknown,
  options?: {
    arguments?: unknown | null
    actor?: string | null
  },
): Promise<OperationRow | null>

/**
 * Makes the next step of an operation, with at most max_jobs jobs (1 to 10000) among the next
 * 20,000, and returns the operation: repeat the call, each time in a transaction of its own,
 * while the state is running. A call that fails or whose client dies changes nothing, and the
 * next call goes on from the step before. A step waits for no job and no key; jobs that the step
 * leaves alone count as skipped, jobs whose change raises an error (of a trigger) included.
 * Raises PU004 for max_jobs out of range, PU005 for an unknown operation, PU007 outside READ
 * COMMITTED.
 */
export function runOperation(
  db: Database,
  operationId: Id,
  options?: {
    maxJobs?: number | null
  },
): Promise<OperationRow | null>

/**
 * Ends an operation before the last step, and returns it; changes of earlier steps stay. An ended
 * operation is returned unchanged. Raises PU005 for an unknown operation.
 */
export function stopOperation(
  db: Database,
  operationId: Id,
): Promise<OperationRow | null>

/**
 * Starts an operation that takes another operation back, and returns the new operation;
 * run_operation() makes the changes. The call stops the other operation if it still runs. Jobs
 * that have moved since, because they ran, ended or were changed, are left alone and count as
 * skipped, as do jobs that cannot come back: skipped_because counts the reasons, and
 * pulse.operation_job.undo has the reason of each job. A second call returns the same undo.
 * Raises PU004 for an undo and for a change that note_operation() noted, PU005 for an unknown
 * operation.
 */
export function undoOperation(
  db: Database,
  operationId: Id,
  options?: {
    actor?: string | null
  },
): Promise<OperationRow | null>

/**
 * Puts on record, among the operations, that an operator has changed an object other than jobs,
 * in the transaction of the change, and returns the id. action: a name of the change, as "pause
 * queue", at most 64 characters. subject: an object that names the changed object, at most 4096
 * bytes. actor: as for start_operation(). Raises PU004 for anything else.
 */
export function noteOperation(
  db: Database,
  action: string,
  subject: unknown,
  options?: {
    actor?: string | null
  },
): Promise<string>

/**
 * Deletes finished jobs and returns how many: the jobs that match each condition given, at most
 * max_jobs (1 to 1000000); repeat the call while it returns max_jobs. NULL sets no condition. The
 * attempts of the jobs stay until keep_attempts. A line of the server's log says which role
 * deleted how many. Jobs locked by another transaction stay, and jobs for which others wait.
 * Raises PU004 without any condition and for max_jobs out of range, PU005 for an id lost in a
 * failover.
 */
export function deleteFinished(
  db: Database,
  options?: {
    jobIds?: Id[] | null
    olderThan?: Interval | null
    state?: FinishedState | null
    maxJobs?: number | null
  },
): Promise<number>

/**
 * Asks a worker to drain: it gets no more jobs, finishes its jobs, without a limit, and leaves.
 * Returns draining, stopping (asked before), or lost or stopped when the worker has ended. Make
 * the call outside a transaction block, which would hold up the worker's heartbeats. Raises PU002
 * for an unknown worker.
 */
export function drainWorker(
  db: Database,
  workerId: Id,
): Promise<string>

/**
 * Asks a worker to stop: it gets no more jobs, finishes its jobs within its own grace period, and
 * leaves. Returns stopping, or lost or stopped when the worker has ended. Make the call outside a
 * transaction block, which would hold up the worker's heartbeats. Raises PU002 for an unknown
 * worker.
 */
export function stopWorker(
  db: Database,
  workerId: Id,
): Promise<string>

/**
 * Asks every living worker of these names to drain, as drain_worker does, and returns how many
 * workers. A notice lists the names that no living worker has; NULL names no worker.
 */
export function drainWorkers(
  db: Database,
  workerNames: string[],
): Promise<number>

/**
 * Asks every living worker of these names to stop, as stop_worker does, and returns how many
 * workers. A notice lists the names that no living worker has; NULL names no worker.
 */
export function stopWorkers(
  db: Database,
  workerNames: string[],
): Promise<number>

/**
 * Declares every worker of these names lost, living workers too, recovers their jobs and returns
 * how many. The call consumes the attempts and counts no crash; the jobs are ready again at once,
 * or failed after the last attempt. The call leaves a worker with a claim in progress alone, with
 * a warning; NULL names no worker. Raises PU007 outside READ COMMITTED.
 */
export function forceUnlockWorkers(
  db: Database,
  workerNames: string[],
): Promise<number>

/**
 * Moves the jobs of Graphile Worker (0.14 or later) in this schema here: payload, queue,
 * priority, run_at, attempts, max_attempts, key, flags, last error. Jobs whose attempts are used
 * up become failed jobs. Returns which jobs the call took and which jobs stay there, and why;
 * dry_run => true returns the same and changes nothing. Producers and workers of Graphile Worker
 * wait until the transaction ends. Needs the rights of both owners. Raises PU004 for a dry_run of
 * NULL, PU005 where the schema has no such jobs, PU007 outside READ COMMITTED, 42501 where the
 * tables would run another role's code, 55006 while workers of Graphile Worker hold jobs or
 * queues.
 */
export function importGraphileWorker(
  db: Database,
  options?: {
    schema?: string | null
    dryRun?: boolean | null
  },
): Promise<ImportGraphileWorkerRow[]>
