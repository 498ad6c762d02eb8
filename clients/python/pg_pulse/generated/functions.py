# Written by test/docs/generate; do not edit.
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, overload

from ..calls import LEFT_OUT, Function, call, flow_document, once_arguments
from ..types import AsyncDatabase, Database, FlowJob, Id, Interval, JobSpec, Unique

FinishedState = Literal["completed", "failed", "quarantined", "cancelled", "expired"]
JobState = Literal["ready", "parked", "running"]


@dataclass(frozen=True, slots=True)
class JobRow:
    # Id of the job; no id is used twice
    id: str
    # Name of the task
    identifier: str | None
    # Document that the producer gave
    payload: Any
    # Named queue, of which a limited number of jobs run at a time; NULL without one
    queue_name: str | None
    # A lower number is claimed first
    priority: int | None
    # Time at which the job falls due
    run_at: datetime | None
    # ready, parked or running
    state: JobState | None
    # Attempts consumed, the running one included
    attempts: int | None
    # Attempts that the job has in all
    max_attempts: int | None
    # Attempts that ended with the death of the worker
    crashes: int | None
    # Unique among waiting jobs; NULL without one
    job_key: str | None
    # A claim with one of these flags among its forbidden_flags leaves the job to other
    # workers
    flags: list[str] | None
    # Of a running job, the owner; of a ready job, the only worker that may run this poison
    # suspect (see claim)
    worker_id: str | None
    # Names the current claim; NULL unless the job runs
    token: str | None
    # When a worker claimed the job; NULL unless the job runs
    claimed_at: datetime | None
    # Last progress report, or the claim
    last_activity_at: datetime | None
    # Last stage that the task reported
    stage: str | None
    # Reported fraction, 0 to 1
    progress: float | None
    # Last message that the task reported
    message: str | None
    # Reported by the task, handed to the next attempt
    checkpoint: Any
    # Error of the last attempt that ended with one
    last_error: str | None
    # Why the last attempt was recovered: session, host, silence, timeout, stall, crash (of
    # its program) or hand; NULL without a recovery
    recovered: str | None
    # Counts the changes by which attempts may have started again; 0 comes after 2147483647
    revision: int | None
    # When the job was added
    created_at: datetime | None
    # When the job was last changed
    updated_at: datetime | None
    # Time at which cancel_job flagged the running job
    cancel_requested_at: datetime | None
    # Reason that cancel_job was given
    cancel_reason: str | None
    # Due time of the schedule that added the job; NULL for another job
    scheduled_for: datetime | None
    # The first claim must come by then, or the job expires; NULL means never, as for each job
    # that was claimed
    start_by: datetime | None
    # When the job starts: completed, ended or failed, as add_job_after was asked; NULL for a
    # job that never waited for others
    starts_when: str | None
    # How the parents of the job ended, as a JSON array; NULL without any such end on record
    parents: Any
    # W3C traceparent of the job; NULL without a trace
    traceparent: str | None
    # The producer of the job: the role that has added it, or that stored its schedule; NULL:
    # every producer
    added_by: str | None
    # The job that died, of a job that is a dead letter; NULL for any other job
    dead_letter_of: str | None


_JobRow = (
    "id::text AS id, identifier, payload, queue_name, priority, run_at, state::text AS state, "
    "attempts, max_attempts, crashes, job_key, flags, worker_id::text AS worker_id, "
    "token::text AS token, claimed_at, last_activity_at, stage, progress, message, checkpoint, "
    "last_error, recovered, revision, created_at, updated_at, cancel_requested_at, cancel_reason, "
    "scheduled_for, start_by, starts_when, parents, traceparent, added_by, "
    "dead_letter_of::text AS dead_letter_of"
)


@dataclass(frozen=True, slots=True)
class OperationRow:
    # Id of the operation
    id: str
    # retry, cancel, reschedule, fail or undo; or the action that note_operation() was told
    action: str | None
    # Which jobs, as the caller of start_operation() told
    filter: Any
    # Arguments of the action
    arguments: Any
    # Name that the caller gave for the person or token behind the call; NULL without a name
    actor: str | None
    # Role that started the operation
    role: str | None
    # running (steps are left), done, or stopped before the last step
    state: str | None
    # Jobs with a higher id were added later, and are left alone
    last_id: str | None
    # The last id that the last step checked
    checked_to: str | None
    # How many jobs the operation has changed
    changed: str | None
    # How many jobs of the filter the operation left alone: another transaction held the job,
    # another job had the key, the job had no attempt left, or the job had moved since
    skipped: str | None
    # The operation that this operation takes back
    undoes: str | None
    # How many jobs were left alone, by reason; NULL without any
    skipped_because: Any
    # When the operation was started
    created_at: datetime | None
    # When the last step of the operation ran
    updated_at: datetime | None
    # When the operation was done or stopped; NULL before
    ended_at: datetime | None


_OperationRow = (
    "id::text AS id, action, filter, arguments, actor, role, state, last_id::text AS last_id, "
    "checked_to::text AS checked_to, changed::text AS changed, skipped::text AS skipped, "
    "undoes::text AS undoes, skipped_because, created_at, updated_at, ended_at"
)


@dataclass(frozen=True, slots=True)
class QueueRow:
    # Name of the queue
    queue_name: str | None
    # How many jobs of the queue run at a time
    concurrency: int | None
    # A pause that version 0.1.0 stored, for the queue of that very name; others: queue_pause
    paused: bool | None
    # When the queue got settings
    created_at: datetime | None
    # When the settings last changed
    updated_at: datetime | None
    # How many jobs of the queue and of all queues within it run at a time; NULL: no limit
    total: int | None
    # LEVEL/* stands for the members of the level; false where only version 0.1.0 has stored
    # the row
    is_level: bool | None
    # Once a job of the queue has been claimed, no other job starts before the claimed job has
    # ended
    is_strict: bool | None
    # How a strict queue acts when a job ends failed, quarantined or expired: continue or
    # pause
    on_dead: str | None
    # The queues within the level take turns to start jobs
    fair: bool | None
    # How many jobs the queue starts at a turn where a level above the queue is fair
    weight: int | None
    # How many jobs of the queue and of all queues within it are claimed in each per; NULL: no
    # limit
    rate: int | None
    # The time in which rate jobs are claimed; NULL: 1 s
    per: str | None
    # How many of the jobs may be claimed at once after a pause; NULL: as many as rate
    burst: int | None


_QueueRow = (
    "queue_name, concurrency, paused, created_at, updated_at, total, is_level, is_strict, on_dead, "
    "fair, weight, rate, per::text AS per, burst"
)


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    # Name of the schedule
    name: str | None
    # Task of the schedule's jobs
    identifier: str | None
    # Cron rule; NULL for an elapsed time
    cron: str | None
    # Elapsed time between due times; NULL for a cron rule
    every: str | None
    # Zone in which a cron rule is read
    time_zone: str | None
    # When the rule was given: due times of an elapsed time count from the anchor
    anchor: datetime | None
    # Payload of the schedule's jobs
    payload: Any
    # Named queue of the schedule's jobs; NULL: none
    queue_name: str | None
    # Attempts of the schedule's jobs; NULL: as add_job
    max_attempts: int | None
    # Priority of the schedule's jobs; NULL: 0
    priority: int | None
    # Flags of the schedule's jobs; NULL: none
    flags: list[str] | None
    # Key of the schedule's jobs; NULL: none
    job_key: str | None
    # replace, preserve_run_at or unsafe_dedupe
    job_key_mode: str | None
    # Jobs for due times at which no session swept: skip, once or all
    missed: str | None
    # With all: a due time that is older than this gets no job
    missed_for: str | None
    # Action of a due time while the job before waits or runs: allow, skip or replace
    overlap: str | None
    # The schedule adds no jobs
    paused: bool | None
    # The first due time that is not settled
    next_due: datetime | None
    # The last settled due time
    last_due: datetime | None
    # Last job that a due time added
    last_job_id: str | None
    # Due times without a job: missed or refused
    missed_count: str | None
    # Due times without a job because the job before still waited or ran
    overlapped_count: str | None
    # Why the last refused job was refused
    last_error: str | None
    # Due time of the last refused job
    last_error_at: datetime | None
    # The crontab that names the schedule; NULL: schedule() made it
    crontab_set: str | None
    # Since when the crontab names the schedule no more
    gone_at: datetime | None
    # Whether the schedule was paused when the crontab left it out
    paused_before: bool | None
    # When the schedule was created
    created_at: datetime | None
    # When a call changed the schedule
    updated_at: datetime | None
    # The role that stored the schedule, and the producer of its jobs; NULL: every producer
    added_by: str | None
    # When the schedule was paused; NULL while the schedule runs
    paused_at: datetime | None
    # The role that has paused the schedule, or loaded its crontab
    paused_by: str | None


_ScheduleRow = (
    "name, identifier, cron, every::text AS every, time_zone, anchor, payload, queue_name, "
    "max_attempts, priority, flags, job_key, job_key_mode, missed, missed_for::text AS missed_for, "
    "overlap, paused, next_due, last_due, last_job_id::text AS last_job_id, "
    "missed_count::text AS missed_count, overlapped_count::text AS overlapped_count, last_error, "
    "last_error_at, crontab_set, gone_at, paused_before, created_at, updated_at, added_by, "
    "paused_at, paused_by"
)


@dataclass(frozen=True, slots=True)
class TaskRow:
    # Name of the task
    identifier: str | None
    # Attempts of a job that is added without max_attempts
    max_attempts: int | None
    # Limit of an attempt since the claim; NULL takes the pulse.default_timeout of the claim
    timeout: str | None
    # Limit between two progress reports; NULL means none
    stall_timeout: str | None
    # Wait before the next attempt: exponential, fixed or none; NULL means exponential
    backoff: str | None
    # Of exponential, the first wait, which doubles with each attempt, and NULL means
    # exp(least(10, attempts)) seconds; of fixed, the wait, and NULL means 10 s
    backoff_base: str | None
    # Longest wait, before jitter; NULL means none
    backoff_cap: str | None
    # Fraction, 0 to 1, by which a wait is lengthened or shortened at random; NULL means 0
    jitter: float | None
    # How long completed jobs are kept; NULL takes pulse.keep_completed
    keep_completed: str | None
    # Deaths of workers after which a job is quarantined; -1 means never, NULL takes
    # pulse.max_crashes
    max_crashes: int | None
    # A worker's action on the task while the database is out of reach: continue or kill; NULL
    # means continue
    on_unreachable: str | None
    # Full name of the function that runs the task; text, because pg_upgrade refuses a column
    # of regprocedure
    handler: str | None
    # When the task got settings
    created_at: datetime | None
    # When the settings last changed
    updated_at: datetime | None
    # How long after run_at a new job may be claimed for the first time; NULL means always
    expires_after: str | None
    # Queue of a job that is added without a queue; {member} stands for a member of the
    # payload
    queue: str | None
    # Task of the job that the end of a job adds, where the job ends failed, quarantined or
    # expired; NULL: no job is added
    dead_letter: str | None


_TaskRow = (
    "identifier, max_attempts, timeout::text AS timeout, stall_timeout::text AS stall_timeout, "
    "backoff, backoff_base::text AS backoff_base, backoff_cap::text AS backoff_cap, jitter, "
    "keep_completed::text AS keep_completed, max_crashes, on_unreachable, handler, created_at, "
    "updated_at, expires_after::text AS expires_after, queue, dead_letter"
)


@dataclass(frozen=True, slots=True)
class AddFlowRow:
    key: str | None
    id: str
    flow_id: str | None


_AddFlowRow = (
    "key, id::text AS id, flow_id::text AS flow_id"
)


@dataclass(frozen=True, slots=True)
class AddJobOnceRow:
    id: str
    is_new: bool | None
    state: str | None


_AddJobOnceRow = (
    "id::text AS id, is_new, state"
)


@dataclass(frozen=True, slots=True)
class AddJobForRequestRow:
    outcome: str | None
    job_id: str | None
    job_state: str | None
    job_run_at: datetime | None


_AddJobForRequestRow = (
    "outcome, job_id::text AS job_id, job_state, job_run_at"
)


@dataclass(frozen=True, slots=True)
class EndedRow:
    id: str
    state: FinishedState | None
    result: Any
    last_error: str | None
    finished_at: datetime | None


_EndedRow = (
    "id::text AS id, state::text AS state, result, last_error, finished_at"
)


@dataclass(frozen=True, slots=True)
class LoadCrontabRow:
    name: str | None
    change: str | None


_LoadCrontabRow = (
    "name, change"
)


@dataclass(frozen=True, slots=True)
class OperationActionsRow:
    action: str | None
    states: list[str] | None
    usual_states: list[str] | None


_OperationActionsRow = (
    "action, states, usual_states"
)


@dataclass(frozen=True, slots=True)
class PreviewOperationRow:
    jobs: str | None
    is_exact: bool | None
    sample_ids: list[str] | None


_PreviewOperationRow = (
    "jobs::text AS jobs, is_exact, sample_ids::text[] AS sample_ids"
)


@dataclass(frozen=True, slots=True)
class ImportGraphileWorkerRow:
    what: str | None
    outcome: str | None
    jobs: str | None
    detail: str | None


_ImportGraphileWorkerRow = (
    "what, outcome, jobs::text AS jobs, detail"
)


_add_job = Function(
    "add_job", "row", row=JobRow, columns=_JobRow,
    takes={
        "identifier": "text", "payload": "json", "queue_name": "text", "run_at": "timestamptz",
        "max_attempts": "int", "job_key": "text", "priority": "int", "flags": "text[]",
        "job_key_mode": "text",
    },
)


@overload
def add_job(
    db: AsyncDatabase, identifier: str, payload: object = ..., *, queue_name: str | None = ...,
    run_at: datetime | str | None = ..., max_attempts: int | None = ...,
    job_key: str | None = ..., priority: int | None = ..., flags: Iterable[str] | None = ...,
    job_key_mode: str | None = ..., unique: Unique,
) -> Awaitable[AddJobOnceRow]: ...


@overload
def add_job(
    db: Database, identifier: str, payload: object = ..., *, queue_name: str | None = ...,
    run_at: datetime | str | None = ..., max_attempts: int | None = ...,
    job_key: str | None = ..., priority: int | None = ..., flags: Iterable[str] | None = ...,
    job_key_mode: str | None = ..., unique: Unique,
) -> AddJobOnceRow: ...


@overload
def add_job(
    db: AsyncDatabase, identifier: str, payload: object = ..., *, queue_name: str | None = ...,
    run_at: datetime | str | None = ..., max_attempts: int | None = ...,
    job_key: str | None = ..., priority: int | None = ..., flags: Iterable[str] | None = ...,
    job_key_mode: str | None = ..., unique: None = ...,
) -> Awaitable[JobRow]: ...


@overload
def add_job(
    db: Database, identifier: str, payload: object = ..., *, queue_name: str | None = ...,
    run_at: datetime | str | None = ..., max_attempts: int | None = ...,
    job_key: str | None = ..., priority: int | None = ..., flags: Iterable[str] | None = ...,
    job_key_mode: str | None = ..., unique: None = ...,
) -> JobRow: ...


def add_job(
    db, identifier, payload=LEFT_OUT, **options
):
    """Adds a job in the caller's transaction, and returns the row. NULL takes the default:
    for run_at the time of the transaction, for max_attempts the number of the task, for
    priority 0. With a job_key, a waiting job of the same key is replaced (replace), is
    replaced but keeps its run_at (preserve_run_at), or stays unchanged (dedupe, or
    unsafe_dedupe). A role that may not read pulse.job sees neither payload nor token nor
    worker of an older job. Raises PU004 for a name or value out of range, 42501 for a job_key
    under which a job of another producer lives, and 40001 for a job_key that another session
    took after a REPEATABLE READ or SERIALIZABLE transaction had begun: repeat the
    transaction."""
    if options.get("unique"):
        return add_job_once(db, **once_arguments(identifier, payload, **options))
    options.pop("unique", None)
    return call(
        db, _add_job, [identifier, payload], options,
    )


_add_job_after = Function(
    "add_job_after", "row", row=JobRow, columns=_JobRow,
    takes={
        "after": "bigint[]", "identifier": "text", "payload": "json", "queue_name": "text",
        "run_at": "timestamptz", "max_attempts": "int", "job_key": "text", "priority": "int",
        "flags": "text[]", "job_key_mode": "text", "starts_when": "text",
        "start_by": "timestamptz",
    },
)


@overload
def add_job_after(
    db: AsyncDatabase, after: Iterable[Id], identifier: str, payload: object = ..., *,
    queue_name: str | None = ..., run_at: datetime | str | None = ...,
    max_attempts: int | None = ..., job_key: str | None = ..., priority: int | None = ...,
    flags: Iterable[str] | None = ..., job_key_mode: str | None = ...,
    starts_when: str | None = ..., start_by: datetime | str | None = ...,
) -> Awaitable[JobRow]: ...


@overload
def add_job_after(
    db: Database, after: Iterable[Id], identifier: str, payload: object = ..., *,
    queue_name: str | None = ..., run_at: datetime | str | None = ...,
    max_attempts: int | None = ..., job_key: str | None = ..., priority: int | None = ...,
    flags: Iterable[str] | None = ..., job_key_mode: str | None = ...,
    starts_when: str | None = ..., start_by: datetime | str | None = ...,
) -> JobRow: ...


def add_job_after(
    db, after, identifier, payload=LEFT_OUT, **options
):
    """Adds a job as add_job does, and lets it wait until the jobs of these ids have ended;
    returns the row. starts_when: completed (all did; else the new job ends as cancelled),
    ended (in whatever way) or failed (at least one did not complete; else the new job ends as
    cancelled, not needed). start_by: the job ends as expired unless a claim takes it in time.
    {} waits for nothing. An id whose job no longer has a row counts as completed; the call
    waits for a transaction that deletes or retries an ended parent. Raises PU004 for a name
    or value out of range and for a job that would wait for itself, 42501 and 40001 as add_job
    does, PU005 for an id never given out or lost in a failover, for a parent that an open
    transaction adds, and for a job of another producer."""
    return call(
        db, _add_job_after, [after, identifier, payload], options,
    )


_add_flow = Function(
    "add_flow", "rows", row=AddFlowRow, columns=_AddFlowRow,
    takes={
        "jobs": "json", "flow_name": "text",
    },
)


@overload
def add_flow(
    db: AsyncDatabase, jobs: Iterable[FlowJob], *, flow_name: str | None = ...,
) -> Awaitable[list[AddFlowRow]]: ...


@overload
def add_flow(
    db: Database, jobs: Iterable[FlowJob], *, flow_name: str | None = ...,
) -> list[AddFlowRow]: ...


def add_flow(
    db, jobs, **options
):
    """Adds jobs that wait for each other, in the caller's transaction, and returns the id of
    each, in the order of the array. jobs: an array of objects with the arguments of
    add_job_after; in after stand keys of jobs of the flow, in any order, and ids of other
    jobs, as numbers. key: a string, which a job needs that others name. flow_name: for the
    view flows, at most 512 characters. Raises PU004 for a value out of range, an unknown
    member or key, and jobs that wait for each other, 42501 and 40001 as add_job does, PU005
    for an id never given out, lost in a failover or not committed, and for a job of another
    producer."""
    return call(
        db, _add_flow, [flow_document(jobs)], options,
    )


_add_dependency = Function(
    "add_dependency", "nothing",
    takes={
        "job_id": "bigint", "after": "bigint[]",
    },
)


@overload
def add_dependency(
    db: AsyncDatabase, job_id: Id, after: Iterable[Id],
) -> Awaitable[None]: ...


@overload
def add_dependency(
    db: Database, job_id: Id, after: Iterable[Id],
) -> None: ...


def add_dependency(
    db, job_id, after,
):
    """Lets a job that no worker has claimed wait for more jobs. This transaction must have
    added the parents, and no parent may wait for a job older than the waiting job. So a
    running job of a batch adds members to the last job of the batch. Raises PU004 for any
    other job, PU005 for an unknown job and for a job of another producer."""
    return call(
        db, _add_dependency, [job_id, after],
    )


_add_jobs = Function(
    "add_jobs", "rows", row=JobRow, columns=_JobRow,
    takes={
        "specs": "pulse.job_spec[]", "job_key_preserve_run_at": "bool",
    },
)


@overload
def add_jobs(
    db: AsyncDatabase, specs: Iterable[JobSpec], *, job_key_preserve_run_at: bool | None = ...,
) -> Awaitable[list[JobRow]]: ...


@overload
def add_jobs(
    db: Database, specs: Iterable[JobSpec], *, job_key_preserve_run_at: bool | None = ...,
) -> list[JobRow]: ...


def add_jobs(
    db, specs, **options
):
    """Adds many jobs in the caller's transaction, and returns the rows in the same order. Of
    two jobs with one key the last wins; payloads that are arrays are concatenated.
    job_key_preserve_run_at => true keeps the run_at of a replaced job. Raises PU004 for a
    name or value out of range, 42501 and 40001 as add_job does."""
    return call(
        db, _add_jobs, [specs], options,
    )


_add_job_once = Function(
    "add_job_once", "row", row=AddJobOnceRow, columns=_AddJobOnceRow,
    takes={
        "unique_for": "interval", "unique_key": "text", "identifier": "text", "payload": "json",
        "queue_name": "text", "run_at": "timestamptz", "max_attempts": "int", "priority": "int",
        "flags": "text[]", "states": "text[]",
    },
)


@overload
def add_job_once(
    db: AsyncDatabase, unique_for: Interval, unique_key: str, identifier: str,
    payload: object = ..., *, queue_name: str | None = ..., run_at: datetime | str | None = ...,
    max_attempts: int | None = ..., priority: int | None = ..., flags: Iterable[str] | None = ...,
    states: Iterable[str] | None = ...,
) -> Awaitable[AddJobOnceRow]: ...


@overload
def add_job_once(
    db: Database, unique_for: Interval, unique_key: str, identifier: str, payload: object = ...,
    *, queue_name: str | None = ..., run_at: datetime | str | None = ...,
    max_attempts: int | None = ..., priority: int | None = ..., flags: Iterable[str] | None = ...,
    states: Iterable[str] | None = ...,
) -> AddJobOnceRow: ...


def add_job_once(
    db, unique_for, unique_key, identifier, payload=LEFT_OUT, **options
):
    """Adds a job as add_job does, unless a job of this task and unique_key was added less
    than unique_for (1 ms to 10 years; a day is 24 hours) before: then returns that job, with
    is_new false. The period lasts from created_at of the first job, whatever becomes of that
    job; its own unique_for counts. states narrows that: a first job in none of these states
    (waiting, running, completed, failed, cancelled, quarantined, expired) is forgotten, and
    the new job is remembered. state: of the job; a job without a record counts as completed.
    While another transaction adds under the key, the call waits for the end of that
    transaction. Raises PU004 for a name or value out of range, 42501 where another producer
    has the key, and 40001 where another session took the key after a REPEATABLE READ or
    SERIALIZABLE transaction had begun: repeat the transaction."""
    return call(
        db, _add_job_once, [unique_for, unique_key, identifier, payload], options,
    )


_forget_once = Function(
    "forget_once", "value", columns="value AS value", type="bool",
    takes={
        "identifier": "text", "unique_key": "text",
    },
)


@overload
def forget_once(
    db: AsyncDatabase, identifier: str, unique_key: str,
) -> Awaitable[bool]: ...


@overload
def forget_once(
    db: Database, identifier: str, unique_key: str,
) -> bool: ...


def forget_once(
    db, identifier, unique_key,
):
    """Ends the period of a key of add_job_once, so that the next add under the key is new;
    leaves the job as it is. Returns whether the key had a period that was not over. Raises
    42501 where another producer has the key."""
    return call(
        db, _forget_once, [identifier, unique_key],
    )


_add_job_for_request = Function(
    "add_job_for_request", "row", row=AddJobForRequestRow, columns=_AddJobForRequestRow,
    takes={
        "client": "text", "idempotency_key": "text", "request_hash": "text", "identifier": "text",
        "payload": "json", "queue_name": "text", "run_at": "timestamptz", "max_attempts": "int",
        "job_key": "text", "priority": "int", "flags": "text[]", "job_key_mode": "text",
    },
)


@overload
def add_job_for_request(
    db: AsyncDatabase, client: str, idempotency_key: str, request_hash: str, identifier: str,
    payload: object = ..., *, queue_name: str | None = ..., run_at: datetime | str | None = ...,
    max_attempts: int | None = ..., job_key: str | None = ..., priority: int | None = ...,
    flags: Iterable[str] | None = ..., job_key_mode: str | None = ...,
) -> Awaitable[AddJobForRequestRow]: ...


@overload
def add_job_for_request(
    db: Database, client: str, idempotency_key: str, request_hash: str, identifier: str,
    payload: object = ..., *, queue_name: str | None = ..., run_at: datetime | str | None = ...,
    max_attempts: int | None = ..., job_key: str | None = ..., priority: int | None = ...,
    flags: Iterable[str] | None = ..., job_key_mode: str | None = ...,
) -> AddJobForRequestRow: ...


def add_job_for_request(
    db, client, idempotency_key, request_hash, identifier, payload=LEFT_OUT, **options
):
    """Adds a job as add_job does, once for each idempotency_key of this client of the calling
    role (names and key of at most 255 characters), and notes the key in the same transaction
    for as long as pulse.keep_idempotency_keys says. outcome: added; replayed, with the values
    that the first call returned, also when the job has ended; other_request, where the key
    was given with another request_hash; in_progress, where another transaction adds under the
    key and has not ended within a second. Raises the errors of add_job, and PU004 for a name,
    key or hash that is NULL, empty or too long."""
    return call(
        db, _add_job_for_request, [client, idempotency_key, request_hash, identifier, payload],
        options,
    )


_remove_job = Function(
    "remove_job", "row", row=JobRow, columns=_JobRow,
    takes={
        "job_key": "text",
    },
)


@overload
def remove_job(
    db: AsyncDatabase, job_key: str,
) -> Awaitable[JobRow | None]: ...


@overload
def remove_job(
    db: Database, job_key: str,
) -> JobRow | None: ...


def remove_job(
    db, job_key,
):
    """Deletes the waiting job of this key, and returns the row; if other jobs wait for it,
    the job ends as cancelled instead. A running job loses the key and is not retried. Returns
    NULL for a key that no job of the caller's producer has. A role that may not read
    pulse.job sees neither payload nor token nor worker of the job. Raises 40001 as add_job
    does."""
    return call(
        db, _remove_job, [job_key],
    )


_wait_for_end = Function(
    "wait_for_end", "value", type="int", is_procedure=True,
    takes={
        "job_ids": "bigint[]", "max_wait": "interval", "any_of": "bool",
    },
)


@overload
def wait_for_end(
    db: AsyncDatabase, job_ids: Iterable[Id], *, max_wait: Interval | None = ...,
    any_of: bool | None = ...,
) -> Awaitable[int]: ...


@overload
def wait_for_end(
    db: Database, job_ids: Iterable[Id], *, max_wait: Interval | None = ...,
    any_of: bool | None = ...,
) -> int: ...


def wait_for_end(
    db, job_ids, **options
):
    """Returns when all of these jobs have ended, with any_of => true when one job has ended,
    or after max_wait (at most 1 day). ended: how many jobs have ended, in whatever way; a job
    without a row has ended, unless a transaction in progress adds the job. Holds no snapshot
    and no transaction id during the wait. Raises PU004 for a value out of range and for more
    than 10,000 ids, PU005 for an id never given out or lost in a failover, PU006 inside a
    transaction block, 25006 on a standby."""
    return call(
        db, _wait_for_end, [job_ids], options,
    )


_ended = Function(
    "ended", "rows", row=EndedRow, columns=_EndedRow,
    takes={
        "job_ids": "bigint[]",
    },
)


@overload
def ended(
    db: AsyncDatabase, job_ids: Iterable[Id],
) -> Awaitable[list[EndedRow]]: ...


@overload
def ended(
    db: Database, job_ids: Iterable[Id],
) -> list[EndedRow]: ...


def ended(
    db, job_ids,
):
    """Returns how each of these jobs ended, in the order of the ids; leaves out jobs that
    have not ended or are not kept. Completed jobs are kept where keep_completed of the task
    or the server says so; all other jobs as long as pulse.keep_failed says. Raises PU005 for
    an id lost in a failover, 25006 on a standby."""
    return call(
        db, _ended, [job_ids],
    )


_schedule = Function(
    "schedule", "row", row=ScheduleRow, columns=_ScheduleRow,
    takes={
        "name": "text", "identifier": "text", "cron": "text", "every": "interval",
        "payload": "json", "time_zone": "text", "queue_name": "text", "max_attempts": "int",
        "priority": "int", "flags": "text[]", "job_key": "text", "job_key_mode": "text",
        "missed": "text", "missed_for": "interval", "overlap": "text", "paused": "bool",
    },
)


@overload
def schedule(
    db: AsyncDatabase, name: str, identifier: str, *, cron: str | None = ...,
    every: Interval | None = ..., payload: object | None = ..., time_zone: str | None = ...,
    queue_name: str | None = ..., max_attempts: int | None = ..., priority: int | None = ...,
    flags: Iterable[str] | None = ..., job_key: str | None = ..., job_key_mode: str | None = ...,
    missed: str | None = ..., missed_for: Interval | None = ..., overlap: str | None = ...,
    paused: bool | None = ...,
) -> Awaitable[ScheduleRow]: ...


@overload
def schedule(
    db: Database, name: str, identifier: str, *, cron: str | None = ...,
    every: Interval | None = ..., payload: object | None = ..., time_zone: str | None = ...,
    queue_name: str | None = ..., max_attempts: int | None = ..., priority: int | None = ...,
    flags: Iterable[str] | None = ..., job_key: str | None = ..., job_key_mode: str | None = ...,
    missed: str | None = ..., missed_for: Interval | None = ..., overlap: str | None = ...,
    paused: bool | None = ...,
) -> ScheduleRow: ...


def schedule(
    db, name, identifier, **options
):
    """Stores a schedule, which adds a job of the task identifier at each due time, and
    returns the schedule. Give cron (five fields as in crontab(5), or @hourly to @yearly, in
    time_zone; NULL means UTC) or every (elapsed time, at least 1 s). The arguments from
    payload to job_key_mode are as in add_job. missed is for due times at which no session
    swept: skip, once (one job for all), all (each due time that is at most missed_for old).
    overlap is for a due time at which the job before still waits or runs: allow, skip,
    replace (a waiting job). A call with the same rule and time_zone keeps the phase and
    changes the rest; another rule starts from now. paused: NULL leaves the pause unchanged.
    Raises PU004 for a value out of range."""
    return call(
        db, _schedule, [name, identifier], options,
    )


_unschedule = Function(
    "unschedule", "value", columns="value AS value", type="bool",
    takes={
        "name": "text",
    },
)


@overload
def unschedule(
    db: AsyncDatabase, name: str,
) -> Awaitable[bool]: ...


@overload
def unschedule(
    db: Database, name: str,
) -> bool: ...


def unschedule(
    db, name,
):
    """Deletes a schedule, and returns whether there was one. Jobs that the schedule has added
    stay."""
    return call(
        db, _unschedule, [name],
    )


_pause_schedule = Function(
    "pause_schedule", "row", row=ScheduleRow, columns=_ScheduleRow,
    takes={
        "name": "text",
    },
)


@overload
def pause_schedule(
    db: AsyncDatabase, name: str,
) -> Awaitable[ScheduleRow | None]: ...


@overload
def pause_schedule(
    db: Database, name: str,
) -> ScheduleRow | None: ...


def pause_schedule(
    db, name,
):
    """Stops a schedule from adding jobs until resume_schedule. Due times that have passed,
    and that no sweep has settled, count as missed; due times during the pause are not
    counted. A role that may not read pulse.schedule sees no payload. Raises PU005 for an
    unknown schedule."""
    return call(
        db, _pause_schedule, [name],
    )


_resume_schedule = Function(
    "resume_schedule", "row", row=ScheduleRow, columns=_ScheduleRow,
    takes={
        "name": "text",
    },
)


@overload
def resume_schedule(
    db: AsyncDatabase, name: str,
) -> Awaitable[ScheduleRow | None]: ...


@overload
def resume_schedule(
    db: Database, name: str,
) -> ScheduleRow | None: ...


def resume_schedule(
    db, name,
):
    """Starts a schedule from now: the next due time is the first in the future, whatever the
    schedule has settled. A role that may not read pulse.schedule sees no payload. Raises
    PU005 for an unknown schedule."""
    return call(
        db, _resume_schedule, [name],
    )


_run_schedule_now = Function(
    "run_schedule_now", "row", row=JobRow, columns=_JobRow,
    takes={
        "name": "text",
    },
)


@overload
def run_schedule_now(
    db: AsyncDatabase, name: str,
) -> Awaitable[JobRow | None]: ...


@overload
def run_schedule_now(
    db: Database, name: str,
) -> JobRow | None: ...


def run_schedule_now(
    db, name,
):
    """Adds the job of a schedule at once and returns it, whether or not the schedule is
    paused. The job has no scheduled_for. The call moves no due time and does not ask overlap.
    A role that may not read pulse.job sees no payload. Raises PU005 for an unknown schedule."""
    return call(
        db, _run_schedule_now, [name],
    )


_next_runs = Function(
    "next_runs", "values", columns="value AS value", type="timestamptz",
    takes={
        "name": "text", "max_runs": "int", "after": "timestamptz",
    },
)


@overload
def next_runs(
    db: AsyncDatabase, name: str, *, max_runs: int | None = ...,
    after: datetime | str | None = ...,
) -> Awaitable[list[datetime]]: ...


@overload
def next_runs(
    db: Database, name: str, *, max_runs: int | None = ..., after: datetime | str | None = ...,
) -> list[datetime]: ...


def next_runs(
    db, name, **options
):
    """Returns the first max_runs (1 to 100000) due times of a schedule later than after, as
    if the schedule were not paused. NULL means now, or the last due time if the clock was set
    back before that due time. Raises PU004 for max_runs or after out of range, PU005 for an
    unknown schedule."""
    return call(
        db, _next_runs, [name], options,
    )


_cron_runs = Function(
    "cron_runs", "values", columns="value AS value", type="timestamptz",
    takes={
        "cron": "text", "time_zone": "text", "max_runs": "int", "after": "timestamptz",
    },
)


@overload
def cron_runs(
    db: AsyncDatabase, cron: str, *, time_zone: str | None = ..., max_runs: int | None = ...,
    after: datetime | str | None = ...,
) -> Awaitable[list[datetime]]: ...


@overload
def cron_runs(
    db: Database, cron: str, *, time_zone: str | None = ..., max_runs: int | None = ...,
    after: datetime | str | None = ...,
) -> list[datetime]: ...


def cron_runs(
    db, cron, **options
):
    """Returns the first max_runs (1 to 100000) due times of a cron rule later than after;
    NULL means now. Raises PU004 for a text that is no rule, for a rule that no day of eight
    years matches, and for an unknown time zone."""
    return call(
        db, _cron_runs, [cron], options,
    )


_load_crontab = Function(
    "load_crontab", "rows", row=LoadCrontabRow, columns=_LoadCrontabRow,
    takes={
        "set_name": "text", "items": "json",
    },
)


@overload
def load_crontab(
    db: AsyncDatabase, set_name: str, items: object,
) -> Awaitable[list[LoadCrontabRow]]: ...


@overload
def load_crontab(
    db: Database, set_name: str, items: object,
) -> list[LoadCrontabRow]: ...


def load_crontab(
    db, set_name, items,
):
    """Makes the schedules of a crontab equal to items: an array of objects with name,
    identifier and cron (in UTC), and if wanted payload (an object), fill (an interval: missed
    due times of so long are made up for), queue_name, max_attempts, priority, job_key,
    job_key_mode. Schedules of this set that items does not name are paused, and deleted a day
    later unless a call names them again. Returns each name with added, changed, resumed,
    paused or unchanged. pulse-worker --crontab calls the function. Raises PU004 for a value
    out of range, a name given twice, and a schedule that is not of this set."""
    return call(
        db, _load_crontab, [set_name, items],
    )


_set_task = Function(
    "set_task", "row", row=TaskRow, columns=_TaskRow,
    takes={
        "identifier": "text", "max_attempts": "int", "timeout": "interval",
        "stall_timeout": "interval", "backoff": "text", "backoff_base": "interval",
        "backoff_cap": "interval", "jitter": "double precision", "keep_completed": "interval",
        "max_crashes": "int", "on_unreachable": "text", "handler": "regprocedure",
        "expires_after": "interval", "queue": "text", "dead_letter": "text",
    },
)


@overload
def set_task(
    db: AsyncDatabase, identifier: str, *, max_attempts: int | None = ...,
    timeout: Interval | None = ..., stall_timeout: Interval | None = ...,
    backoff: str | None = ..., backoff_base: Interval | None = ...,
    backoff_cap: Interval | None = ..., jitter: float | None = ...,
    keep_completed: Interval | None = ..., max_crashes: int | None = ...,
    on_unreachable: str | None = ..., handler: str | None = ...,
    expires_after: Interval | None = ..., queue: str | None = ..., dead_letter: str | None = ...,
) -> Awaitable[TaskRow]: ...


@overload
def set_task(
    db: Database, identifier: str, *, max_attempts: int | None = ...,
    timeout: Interval | None = ..., stall_timeout: Interval | None = ...,
    backoff: str | None = ..., backoff_base: Interval | None = ...,
    backoff_cap: Interval | None = ..., jitter: float | None = ...,
    keep_completed: Interval | None = ..., max_crashes: int | None = ...,
    on_unreachable: str | None = ..., handler: str | None = ...,
    expires_after: Interval | None = ..., queue: str | None = ..., dead_letter: str | None = ...,
) -> TaskRow: ...


def set_task(
    db, identifier, **options
):
    """Stores settings of a task and returns all settings; NULL leaves a setting unchanged.
    The table pulse.task describes each setting. queue is for later jobs that are added
    without a queue: {member} stands for a string or number of the payload, {member|default}
    for a member that may be missing, and '' takes the queue away. dead_letter is the task of
    the job that is added when a job of this task ends failed, quarantined or expired, and ''
    takes the setting away. Raises PU004 for a value out of range and for a handler that
    cannot take a job, 42501 for a new handler that the caller may not execute."""
    return call(
        db, _set_task, [identifier], options,
    )


_unset_task = Function(
    "unset_task", "value", columns="value AS value", type="bool",
    takes={
        "identifier": "text",
    },
)


@overload
def unset_task(
    db: AsyncDatabase, identifier: str,
) -> Awaitable[bool]: ...


@overload
def unset_task(
    db: Database, identifier: str,
) -> bool: ...


def unset_task(
    db, identifier,
):
    """Takes all settings of a task away, the handler too, and returns whether the task had
    any. From then on the task has the defaults. Jobs keep the values that they got when
    added: max_attempts, start_by and queue. Raises PU004 as set_task does."""
    return call(
        db, _unset_task, [identifier],
    )


_set_queue = Function(
    "set_queue", "row", row=QueueRow, columns=_QueueRow,
    takes={
        "queue_name": "text", "concurrency": "int", "paused": "bool", "total": "int",
        "rate": "int", "per": "interval", "burst": "int", "fair": "bool", "weight": "int",
        "strict": "bool", "on_dead": "text",
    },
)


@overload
def set_queue(
    db: AsyncDatabase, queue_name: str, *, concurrency: int | None = ...,
    paused: bool | None = ..., total: int | None = ..., rate: int | None = ...,
    per: Interval | None = ..., burst: int | None = ..., fair: bool | None = ...,
    weight: int | None = ..., strict: bool | None = ..., on_dead: str | None = ...,
) -> Awaitable[QueueRow]: ...


@overload
def set_queue(
    db: Database, queue_name: str, *, concurrency: int | None = ..., paused: bool | None = ...,
    total: int | None = ..., rate: int | None = ..., per: Interval | None = ...,
    burst: int | None = ..., fair: bool | None = ..., weight: int | None = ...,
    strict: bool | None = ..., on_dead: str | None = ...,
) -> QueueRow: ...


def set_queue(
    db, queue_name, **options
):
    """Stores settings of a queue and returns the settings that hold for it; NULL leaves a
    setting unchanged, -1 takes a limit away. concurrency (1 to 1000000) is how many jobs of
    exactly this name run at a time; total, how many jobs of the queue and of all queues
    within it: mail/x is within mail. Of the same jobs, rate (1 to 1000000) are claimed in
    each per (1 s to 366 days, of 24 hours; 1 s), and burst (as many as rate) at once. paused
    => true calls pause_queue, false resume_queue, of any queue; without another argument no
    setting is stored. Where a level is fair the queues within the level, however deep, take
    turns to start jobs, and weight (1 to 1000) is how many jobs a queue starts in a turn. The
    outermost fair level gives the turns; fair and weight of a level between do nothing, which
    a notice tells. The name mail/* stands for the members of mail that have no settings of
    their own; the weight of mail/* holds for deeper queues too, unless a nearer level has
    settings of members. Running jobs go on. A strict queue runs one job at a time: once a job
    has been claimed, no other job starts before that job has ended, whatever retries the job
    has. on_dead says how a strict queue acts when a job ends failed, quarantined or expired:
    continue, or pause, which resume_queue ends. Raises PU004 for a value out of range, a name
    of more than four levels, a strict queue of another concurrency than 1, on_dead pause
    without strict, and per or burst without rate."""
    return call(
        db, _set_queue, [queue_name], options,
    )


_unset_queue = Function(
    "unset_queue", "value", columns="value AS value", type="bool",
    takes={
        "queue_name": "text",
    },
)


@overload
def unset_queue(
    db: AsyncDatabase, queue_name: str,
) -> Awaitable[bool]: ...


@overload
def unset_queue(
    db: Database, queue_name: str,
) -> bool: ...


def unset_queue(
    db, queue_name,
):
    """Takes away all settings of a queue and its pause, and returns whether it had any. From
    then on it has the settings of the members of its level (mail/* for mail/x) if such
    settings are stored, else it runs one job at a time. Running jobs go on. Raises PU004 as
    set_queue does."""
    return call(
        db, _unset_queue, [queue_name],
    )


_pause_queue = Function(
    "pause_queue", "row", row=QueueRow, columns=_QueueRow,
    takes={
        "queue_name": "text",
    },
)


@overload
def pause_queue(
    db: AsyncDatabase, queue_name: str,
) -> Awaitable[QueueRow | None]: ...


@overload
def pause_queue(
    db: Database, queue_name: str,
) -> QueueRow | None: ...


def pause_queue(
    db, queue_name,
):
    """Pauses a queue and all queues within it, and returns the settings that hold for the
    queue, which stay: once the call commits, no worker claims a job of the queues before
    resume_queue. The name mail/* stands for the direct members of mail that no operator
    paused or resumed by name. Running jobs go on. A notice says if the queue has neither
    settings nor jobs. Raises PU004 as set_queue does."""
    return call(
        db, _pause_queue, [queue_name],
    )


_resume_queue = Function(
    "resume_queue", "row", row=QueueRow, columns=_QueueRow,
    takes={
        "queue_name": "text",
    },
)


@overload
def resume_queue(
    db: AsyncDatabase, queue_name: str,
) -> Awaitable[QueueRow | None]: ...


@overload
def resume_queue(
    db: Database, queue_name: str,
) -> QueueRow | None: ...


def resume_queue(
    db, queue_name,
):
    """Ends the pause of a queue, also a pause that the end of a job began, and returns the
    settings that hold for the queue, which stay. Raises PU005 for a queue that has no
    settings of its own and was not paused."""
    return call(
        db, _resume_queue, [queue_name],
    )


_cancel_job = Function(
    "cancel_job", "value", columns="value AS value", type="text",
    takes={
        "job_id": "bigint", "reason": "text",
    },
)


@overload
def cancel_job(
    db: AsyncDatabase, job_id: Id, *, reason: str | None = ...,
) -> Awaitable[str]: ...


@overload
def cancel_job(
    db: Database, job_id: Id, *, reason: str | None = ...,
) -> str: ...


def cancel_job(
    db, job_id, **options
):
    """Cancels a job. A waiting job ends at once. A running job is flagged, and each heartbeat
    tells the worker; if the job completes first, the completion wins, and any other end is
    recorded as cancelled. Returns cancelled, running (flagged), or the state in which the job
    had already ended: completed also where the job has no row, and its flow, a job that waits
    for it or its schedule knows of the completion. Raises PU005 for an unknown job, 55P03
    where another transaction, as a producer's keyed add, holds the job for more than a
    second: then nothing has changed."""
    return call(
        db, _cancel_job, [job_id], options,
    )


_cancel_flow = Function(
    "cancel_flow", "value", columns="value AS value", type="int",
    takes={
        "flow_id": "bigint", "reason": "text",
    },
)


@overload
def cancel_flow(
    db: AsyncDatabase, flow_id: Id, *, reason: str | None = ...,
) -> Awaitable[int]: ...


@overload
def cancel_flow(
    db: Database, flow_id: Id, *, reason: str | None = ...,
) -> int: ...


def cancel_flow(
    db, flow_id, **options
):
    """Cancels each live job of a flow as cancel_job does, and returns the number of cancelled
    jobs. Jobs outside of the flow follow the jobs that they wait for. Raises PU005 for an
    unknown flow, 55P03 where cancel_job raises it for a job of the flow: then no job is
    cancelled."""
    return call(
        db, _cancel_flow, [flow_id], options,
    )


_retry_job = Function(
    "retry_job", "row", row=JobRow, columns=_JobRow,
    takes={
        "job_id": "bigint",
    },
)


@overload
def retry_job(
    db: AsyncDatabase, job_id: Id,
) -> Awaitable[JobRow | None]: ...


@overload
def retry_job(
    db: Database, job_id: Id,
) -> JobRow | None: ...


def retry_job(
    db, job_id,
):
    """Makes a job that ended without completing live again, due at once, with its id, its
    checkpoint and all attempts, and returns the job; a start_by in the past is taken away. A
    job that is still live is returned unchanged, with a notice. Raises PU005 for an unknown
    job, PU010 for a completed job, while another live job has the key, and while a
    transaction in progress adds or removes a job under the key, 55P03 where another
    transaction, as one that adds a job after this job, holds the record for more than a
    second."""
    return call(
        db, _retry_job, [job_id],
    )


_requeue_job = Function(
    "requeue_job", "value", columns="value AS value", type="bool",
    takes={
        "job_id": "bigint", "reason": "text",
    },
)


@overload
def requeue_job(
    db: AsyncDatabase, job_id: Id, reason: str,
) -> Awaitable[bool]: ...


@overload
def requeue_job(
    db: Database, job_id: Id, reason: str,
) -> bool: ...


def requeue_job(
    db, job_id, reason,
):
    """Takes a running job from its worker, whose token is void from then on. The call
    consumes the attempt and counts no crash; the job is ready again at once, or failed after
    the last attempt. Returns false for a job that does not run. Raises PU005 for an unknown
    job, 55P03 where another transaction holds the job for more than a second."""
    return call(
        db, _requeue_job, [job_id, reason],
    )


_reschedule_jobs = Function(
    "reschedule_jobs", "rows", row=JobRow, columns=_JobRow,
    takes={
        "job_ids": "bigint[]", "run_at": "timestamptz", "priority": "int", "attempts": "int",
        "max_attempts": "int",
    },
)


@overload
def reschedule_jobs(
    db: AsyncDatabase, job_ids: Iterable[Id], *, run_at: datetime | str | None = ...,
    priority: int | None = ..., attempts: int | None = ..., max_attempts: int | None = ...,
) -> Awaitable[list[JobRow]]: ...


@overload
def reschedule_jobs(
    db: Database, job_ids: Iterable[Id], *, run_at: datetime | str | None = ...,
    priority: int | None = ..., attempts: int | None = ..., max_attempts: int | None = ...,
) -> list[JobRow]: ...


def reschedule_jobs(
    db, job_ids, **options
):
    """Changes waiting and failed jobs and returns them; NULL leaves a value unchanged. A
    failed job that gets an attempt again, by attempts or max_attempts, goes live again; any
    other failed job stays failed and has a state of NULL. Running, quarantined, cancelled and
    expired jobs, failed jobs whose key a live job has, and jobs locked by another
    transaction, are left alone, with a notice. Ids of no job, and NULL, name no job. A job
    keeps its start_by. Raises PU004 for a value out of range, for a waiting job that would be
    left without an attempt and for a failed job that would have used more attempts than
    max_attempts, PU005 for an id lost in a failover."""
    return call(
        db, _reschedule_jobs, [job_ids], options,
    )


_complete_jobs = Function(
    "complete_jobs", "rows", row=JobRow, columns=_JobRow,
    takes={
        "job_ids": "bigint[]",
    },
)


@overload
def complete_jobs(
    db: AsyncDatabase, job_ids: Iterable[Id],
) -> Awaitable[list[JobRow]]: ...


@overload
def complete_jobs(
    db: Database, job_ids: Iterable[Id],
) -> list[JobRow]: ...


def complete_jobs(
    db, job_ids,
):
    """Completes waiting and failed jobs by hand and returns them as they were, failed jobs
    with a state of NULL. keep_completed decides whether they are kept. Running, quarantined,
    cancelled and expired jobs, and jobs locked by another transaction, are left alone, with a
    notice. Ids of no job, and NULL, name no job. Raises PU005 for an id lost in a failover."""
    return call(
        db, _complete_jobs, [job_ids],
    )


_permanently_fail_jobs = Function(
    "permanently_fail_jobs", "rows", row=JobRow, columns=_JobRow,
    takes={
        "job_ids": "bigint[]", "error_message": "text",
    },
)


@overload
def permanently_fail_jobs(
    db: AsyncDatabase, job_ids: Iterable[Id], *, error_message: str | None = ...,
) -> Awaitable[list[JobRow]]: ...


@overload
def permanently_fail_jobs(
    db: Database, job_ids: Iterable[Id], *, error_message: str | None = ...,
) -> list[JobRow]: ...


def permanently_fail_jobs(
    db, job_ids, **options
):
    """Ends waiting jobs as failed and returns the jobs; failed jobs get the new message, and
    have a state of NULL. error_message becomes the last_error; NULL stands for "Manually
    marked as failed". Running, quarantined, cancelled and expired jobs, and jobs locked by
    another transaction, are left alone, with a notice. Ids of no job, and NULL, name no job.
    Raises PU005 for an id lost in a failover."""
    return call(
        db, _permanently_fail_jobs, [job_ids], options,
    )


_operation_actions = Function(
    "operation_actions", "rows", row=OperationActionsRow, columns=_OperationActionsRow,
    takes={},
)


@overload
def operation_actions(
    db: AsyncDatabase,
) -> Awaitable[list[OperationActionsRow]]: ...


@overload
def operation_actions(
    db: Database,
) -> list[OperationActionsRow]: ...


def operation_actions(
    db,
):
    """Returns the actions of start_operation(), the states of the jobs that each action may
    change, and the states that the action changes where a filter names neither states nor
    ids."""
    return call(
        db, _operation_actions, [],
    )


_preview_operation = Function(
    "preview_operation", "row", row=PreviewOperationRow, columns=_PreviewOperationRow,
    takes={
        "action": "text", "filter": "json",
    },
)


@overload
def preview_operation(
    db: AsyncDatabase, action: str, filter: object,
) -> Awaitable[PreviewOperationRow | None]: ...


@overload
def preview_operation(
    db: Database, action: str, filter: object,
) -> PreviewOperationRow | None: ...


def preview_operation(
    db, action, filter,
):
    """Returns how many jobs an operation would be about, and the first 20 jobs; changes
    nothing. The function reads 110,000 ended jobs at most, or 80,000 live jobs; for error and
    error_line 20,000, with 8 MB of errors: is_exact is false where there may be more, and
    jobs then counts only the jobs found. action and filter: as for start_operation(). Raises
    PU004 and PU005 as start_operation() does."""
    return call(
        db, _preview_operation, [action, filter],
    )


_start_operation = Function(
    "start_operation", "row", row=OperationRow, columns=_OperationRow,
    takes={
        "action": "text", "filter": "json", "arguments": "json", "actor": "text",
    },
)


@overload
def start_operation(
    db: AsyncDatabase, action: str, filter: object, *, arguments: object | None = ...,
    actor: str | None = ...,
) -> Awaitable[OperationRow | None]: ...


@overload
def start_operation(
    db: Database, action: str, filter: object, *, arguments: object | None = ...,
    actor: str | None = ...,
) -> OperationRow | None: ...


def start_operation(
    db, action, filter, **options
):
    """Notes that an operator is about to change many jobs, and returns the operation;
    run_operation() makes the changes. action: retry (failed and quarantined jobs), cancel,
    reschedule or fail (waiting jobs). filter: conditions, all of which a job must meet:
    states, task, queue, key, error (a part of the last error), error_line (of the last error,
    as list_failures() returns it), ids, older_than and newer_than (by the time of the add).
    {} means every job. arguments: reason of cancel, error of fail, run_at, priority, attempts
    and max_attempts of reschedule. Jobs added later are left alone. actor: for the record,
    the person or program behind the role, at most 128 characters. Raises PU004 for anything
    else, PU005 for an id lost in a failover."""
    return call(
        db, _start_operation, [action, filter], options,
    )


_run_operation = Function(
    "run_operation", "row", row=OperationRow, columns=_OperationRow,
    takes={
        "operation_id": "bigint", "max_jobs": "int",
    },
)


@overload
def run_operation(
    db: AsyncDatabase, operation_id: Id, *, max_jobs: int | None = ...,
) -> Awaitable[OperationRow | None]: ...


@overload
def run_operation(
    db: Database, operation_id: Id, *, max_jobs: int | None = ...,
) -> OperationRow | None: ...


def run_operation(
    db, operation_id, **options
):
    """Makes the next step of an operation, with at most max_jobs jobs (1 to 10000) among the
    next 20,000, and returns the operation: repeat the call, each time in a transaction of its
    own, while the state is running. A call that fails or whose client dies changes nothing,
    and the next call goes on from the step before. A step waits for no job and no key; jobs
    that the step leaves alone count as skipped, jobs whose change raises an error (of a
    trigger) included. Raises PU004 for max_jobs out of range, PU005 for an unknown operation,
    PU007 outside READ COMMITTED."""
    return call(
        db, _run_operation, [operation_id], options,
    )


_stop_operation = Function(
    "stop_operation", "row", row=OperationRow, columns=_OperationRow,
    takes={
        "operation_id": "bigint",
    },
)


@overload
def stop_operation(
    db: AsyncDatabase, operation_id: Id,
) -> Awaitable[OperationRow | None]: ...


@overload
def stop_operation(
    db: Database, operation_id: Id,
) -> OperationRow | None: ...


def stop_operation(
    db, operation_id,
):
    """Ends an operation before the last step, and returns it; changes of earlier steps stay.
    An ended operation is returned unchanged. Raises PU005 for an unknown operation."""
    return call(
        db, _stop_operation, [operation_id],
    )


_undo_operation = Function(
    "undo_operation", "row", row=OperationRow, columns=_OperationRow,
    takes={
        "operation_id": "bigint", "actor": "text",
    },
)


@overload
def undo_operation(
    db: AsyncDatabase, operation_id: Id, *, actor: str | None = ...,
) -> Awaitable[OperationRow | None]: ...


@overload
def undo_operation(
    db: Database, operation_id: Id, *, actor: str | None = ...,
) -> OperationRow | None: ...


def undo_operation(
    db, operation_id, **options
):
    """Starts an operation that takes another operation back, and returns the new operation;
    run_operation() makes the changes. The call stops the other operation if it still runs.
    Jobs that have moved since, because they ran, ended or were changed, are left alone and
    count as skipped, as do jobs that cannot come back: skipped_because counts the reasons,
    and pulse.operation_job.undo has the reason of each job. A second call returns the same
    undo. Raises PU004 for an undo and for a change that note_operation() noted, PU005 for an
    unknown operation."""
    return call(
        db, _undo_operation, [operation_id], options,
    )


_note_operation = Function(
    "note_operation", "value", columns="value::text AS value", type="bigint",
    takes={
        "action": "text", "subject": "json", "actor": "text",
    },
)


@overload
def note_operation(
    db: AsyncDatabase, action: str, subject: object, *, actor: str | None = ...,
) -> Awaitable[str]: ...


@overload
def note_operation(
    db: Database, action: str, subject: object, *, actor: str | None = ...,
) -> str: ...


def note_operation(
    db, action, subject, **options
):
    """Puts on record, among the operations, that an operator has changed an object other than
    jobs, in the transaction of the change, and returns the id. action: a name of the change,
    as "pause queue", at most 64 characters. subject: an object that names the changed object,
    at most 4096 bytes. actor: as for start_operation(). Raises PU004 for anything else."""
    return call(
        db, _note_operation, [action, subject], options,
    )


_delete_finished = Function(
    "delete_finished", "value", columns="value AS value", type="int",
    takes={
        "job_ids": "bigint[]", "older_than": "interval", "state": "pulse.finished_state",
        "max_jobs": "int",
    },
)


@overload
def delete_finished(
    db: AsyncDatabase, *, job_ids: Iterable[Id] | None = ..., older_than: Interval | None = ...,
    state: FinishedState | None = ..., max_jobs: int | None = ...,
) -> Awaitable[int]: ...


@overload
def delete_finished(
    db: Database, *, job_ids: Iterable[Id] | None = ..., older_than: Interval | None = ...,
    state: FinishedState | None = ..., max_jobs: int | None = ...,
) -> int: ...


def delete_finished(
    db, **options
):
    """Deletes finished jobs and returns how many: the jobs that match each condition given,
    at most max_jobs (1 to 1000000); repeat the call while it returns max_jobs. NULL sets no
    condition. The attempts of the jobs stay until keep_attempts. A line of the server's log
    says which role deleted how many. Jobs locked by another transaction stay, and jobs for
    which others wait. Raises PU004 without any condition and for max_jobs out of range, PU005
    for an id lost in a failover."""
    return call(
        db, _delete_finished, [], options,
    )


_drain_worker = Function(
    "drain_worker", "value", columns="value AS value", type="text",
    takes={
        "worker_id": "bigint",
    },
)


@overload
def drain_worker(
    db: AsyncDatabase, worker_id: Id,
) -> Awaitable[str]: ...


@overload
def drain_worker(
    db: Database, worker_id: Id,
) -> str: ...


def drain_worker(
    db, worker_id,
):
    """Asks a worker to drain: it gets no more jobs, finishes its jobs, without a limit, and
    leaves. Returns draining, stopping (asked before), or lost or stopped when the worker has
    ended. Make the call outside a transaction block, which would hold up the worker's
    heartbeats. Raises PU002 for an unknown worker."""
    return call(
        db, _drain_worker, [worker_id],
    )


_stop_worker = Function(
    "stop_worker", "value", columns="value AS value", type="text",
    takes={
        "worker_id": "bigint",
    },
)


@overload
def stop_worker(
    db: AsyncDatabase, worker_id: Id,
) -> Awaitable[str]: ...


@overload
def stop_worker(
    db: Database, worker_id: Id,
) -> str: ...


def stop_worker(
    db, worker_id,
):
    """Asks a worker to stop: it gets no more jobs, finishes its jobs within its own grace
    period, and leaves. Returns stopping, or lost or stopped when the worker has ended. Make
    the call outside a transaction block, which would hold up the worker's heartbeats. Raises
    PU002 for an unknown worker."""
    return call(
        db, _stop_worker, [worker_id],
    )


_drain_workers = Function(
    "drain_workers", "value", columns="value AS value", type="int",
    takes={
        "worker_names": "text[]",
    },
)


@overload
def drain_workers(
    db: AsyncDatabase, worker_names: Iterable[str],
) -> Awaitable[int]: ...


@overload
def drain_workers(
    db: Database, worker_names: Iterable[str],
) -> int: ...


def drain_workers(
    db, worker_names,
):
    """Asks every living worker of these names to drain, as drain_worker does, and returns how
    many workers. A notice lists the names that no living worker has; NULL names no worker."""
    return call(
        db, _drain_workers, [worker_names],
    )


_stop_workers = Function(
    "stop_workers", "value", columns="value AS value", type="int",
    takes={
        "worker_names": "text[]",
    },
)


@overload
def stop_workers(
    db: AsyncDatabase, worker_names: Iterable[str],
) -> Awaitable[int]: ...


@overload
def stop_workers(
    db: Database, worker_names: Iterable[str],
) -> int: ...


def stop_workers(
    db, worker_names,
):
    """Asks every living worker of these names to stop, as stop_worker does, and returns how
    many workers. A notice lists the names that no living worker has; NULL names no worker."""
    return call(
        db, _stop_workers, [worker_names],
    )


_force_unlock_workers = Function(
    "force_unlock_workers", "value", columns="value AS value", type="int",
    takes={
        "worker_names": "text[]",
    },
)


@overload
def force_unlock_workers(
    db: AsyncDatabase, worker_names: Iterable[str],
) -> Awaitable[int]: ...


@overload
def force_unlock_workers(
    db: Database, worker_names: Iterable[str],
) -> int: ...


def force_unlock_workers(
    db, worker_names,
):
    """Declares every worker of these names lost, living workers too, recovers their jobs and
    returns how many. The call consumes the attempts and counts no crash; the jobs are ready
    again at once, or failed after the last attempt. The call leaves a worker with a claim in
    progress alone, with a warning; NULL names no worker. Raises PU007 outside READ COMMITTED."""
    return call(
        db, _force_unlock_workers, [worker_names],
    )


_import_graphile_worker = Function(
    "import_graphile_worker", "rows", row=ImportGraphileWorkerRow, columns=_ImportGraphileWorkerRow,
    takes={
        "schema": "text", "dry_run": "bool",
    },
)


@overload
def import_graphile_worker(
    db: AsyncDatabase, *, schema: str | None = ..., dry_run: bool | None = ...,
) -> Awaitable[list[ImportGraphileWorkerRow]]: ...


@overload
def import_graphile_worker(
    db: Database, *, schema: str | None = ..., dry_run: bool | None = ...,
) -> list[ImportGraphileWorkerRow]: ...


def import_graphile_worker(
    db, **options
):
    """Moves the jobs of Graphile Worker (0.14 or later) in this schema here: payload, queue,
    priority, run_at, attempts, max_attempts, key, flags, last error. Jobs whose attempts are
    used up become failed jobs. Returns which jobs the call took and which jobs stay there,
    and why; dry_run => true returns the same and changes nothing. Producers and workers of
    Graphile Worker wait until the transaction ends. Needs the rights of both owners. Raises
    PU004 for a dry_run of NULL, PU005 where the schema has no such jobs, PU007 outside READ
    COMMITTED, 42501 where the tables would run another role's code, 55006 while workers of
    Graphile Worker hold jobs or queues."""
    return call(
        db, _import_graphile_worker, [], options,
    )


__all__ = [
    "AddFlowRow", "AddJobForRequestRow", "AddJobOnceRow", "EndedRow", "FinishedState",
    "ImportGraphileWorkerRow", "JobRow", "JobState", "LoadCrontabRow", "OperationActionsRow",
    "OperationRow", "PreviewOperationRow", "QueueRow", "ScheduleRow", "TaskRow", "add_dependency",
    "add_flow", "add_job", "add_job_after", "add_job_for_request", "add_job_once", "add_jobs",
    "cancel_flow", "cancel_job", "complete_jobs", "cron_runs", "delete_finished", "drain_worker",
    "drain_workers", "ended", "force_unlock_workers", "forget_once", "import_graphile_worker",
    "load_crontab", "next_runs", "note_operation", "operation_actions", "pause_queue",
    "pause_schedule", "permanently_fail_jobs", "preview_operation", "remove_job", "requeue_job",
    "reschedule_jobs", "resume_queue", "resume_schedule", "retry_job", "run_operation",
    "run_schedule_now", "schedule", "set_queue", "set_task", "start_operation", "stop_operation",
    "stop_worker", "stop_workers", "undo_operation", "unschedule", "unset_queue", "unset_task",
    "wait_for_end",
]
