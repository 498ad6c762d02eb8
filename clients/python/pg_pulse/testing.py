"""Tests with the real handlers: a transaction in which jobs are added and run, and that the test
rolls back. The extension pg_pulse_tap claims the jobs and moves time."""
import asyncio
import contextlib
import inspect
import json
from dataclasses import dataclass, field
from typing import Any

from . import ends, output
from .calls import array_literal, execute, perform
from .document import encode, list_of
from .errors import sqlstate
from .generated.errors import ClaimLost, NoExtension
from .job import claimed
from .task import Task
from .types import Database

_MAX_JOBS = 1000


@dataclass
class Attempt:
    """One attempt that run_jobs() has run. `state`: of the job after the attempt: completed,
    ready, failed, snoozed …"""
    id: str
    task: str
    attempt: int
    payload: Any
    state: str
    result: Any = None
    error: str | None = None
    # Pairs of level and text.
    logs: list[tuple[str, str]] = field(default_factory=list)


class _Record:
    """What a job says while it runs: the port of the job."""

    def __init__(self):
        self.logs, self.reports = [], []

    def tell(self, _, members):
        if "log" in members:
            self.logs.append((members["level"], members["log"]))
        else:
            self.reports.append(members)


def _ask(db, call, job, *values):
    return execute(db, f"SELECT * FROM pulse.{call} AS state", [job.id, job.token, *values])


def _handle(db, task, job):
    """Steps with the end of the attempt; its rows are gone where the handler raises, as those of a
    transaction of its own."""
    if task.is_async and not _is_async(db) and _runs_loop():
        raise RuntimeError(
            f"the task {task.identifier} is async, and so is the test, whose event loop waits for "
            "run_jobs(): await asyncio.to_thread(pulse.run_jobs, tasks), or give an asynchronous "
            "connection")
    yield from execute(db, "SAVEPOINT pulse_test")
    before, stop_routing = output.current.set(job), output.route()
    try:
        value = task.handle(job)
        if inspect.isawaitable(value):
            value = (yield value) if _is_async(db) else asyncio.run(_awaited(value))
        yield from execute(db, "SELECT pulse_tap.check_constraints()")
        yield from execute(db, "RELEASE SAVEPOINT pulse_test")
        return ends.of_value(job, value)
    except (Exception, SystemExit, asyncio.CancelledError) as raised:
        if _is_of_the_test(raised):
            raise
        yield from execute(db, "ROLLBACK TO SAVEPOINT pulse_test")
        yield from execute(db, "RELEASE SAVEPOINT pulse_test")
        return ends.of_raised(raised)
    finally:
        output.finish_lines(job)
        stop_routing()
        with contextlib.suppress(ValueError):  # awaited in another context
            output.current.reset(before)


def _runs_loop():
    with contextlib.suppress(RuntimeError):
        return asyncio.get_running_loop() is not None
    return False


# A time limit of the test may cancel run_jobs().
def _is_of_the_test(raised):
    with contextlib.suppress(RuntimeError):  # no event loop
        return isinstance(raised, asyncio.CancelledError) and asyncio.current_task().cancelling()
    return False


# Steps with whether the claim is not over, as it is where the handler's transaction has ended it.
def _is_held(db, job):
    yield from execute(db, "SAVEPOINT pulse_test")
    try:
        yield from _ask(db, "held_job(%s::text::bigint, %s::text::bigint)", job)
        return True
    except ClaimLost:
        yield from execute(db, "ROLLBACK TO SAVEPOINT pulse_test")
        return False
    finally:
        yield from execute(db, "RELEASE SAVEPOINT pulse_test")


async def _awaited(value):
    return await value


def _is_async(db):
    return inspect.iscoroutinefunction(getattr(db, "execute", None))


def _text(members, name):
    return None if members.get(name) is None else encode(members[name], name)


def _report(db, job, end, reports):
    """Steps that report an attempt as pulse-worker does; the state of the job."""
    ids = "%s::text::bigint, %s::text::bigint"
    if "done" in end:
        return "completed"
    for each in reports:
        yield from _ask(
            db, f"progress({ids}, fraction => %s::float8, message => %s::text, stage => %s::text, "
            "checkpoint => %s::json)", job, each.get("progress"), each.get("message"),
            each.get("stage"), _text(each, "checkpoint"))
    if "snooze" in end:
        yield from _ask(db, f"snooze({ids}, %s::float8 * interval '1 s', %s::json)", job,
                        end["snooze"], _text(end, "checkpoint"))
        return "snoozed"
    if "error" not in end:
        yield from _ask(db, f"complete({ids}, %s::json)", job, _text(end, "result"))
        return "completed"
    [row] = yield from _ask(
        db, f"fail({ids}, %s::text, %s::bool, %s::float8 * interval '1 s', %s::json)", job,
        end["error"], end.get("retry", True), end.get("retry_in"), _text(end, "payload"))
    return row[0]


def _run_next(db, tasks):
    rows = yield from execute(
        db, """SELECT c.id::text, c.token::text, row_to_json(c)::text
            FROM pulse_tap.claim_next(%s::text::text[]) AS c WHERE c.id IS NOT NULL""",
        [array_literal(tasks)])
    if not rows:
        return None
    record = _Record()
    job = claimed(record, *rows[0])
    end = yield from _handle(db, tasks[job.identifier], job)
    if "done" in end and (yield from _is_held(db, job)):
        end = ends.UNCOMMITTED
    job.is_over = True
    state = yield from _report(db, job, end, record.reports)
    result = _text(end, "result")
    return Attempt(job.id, job.identifier, job.attempt, job.payload, state,
                   result and json.loads(result), end.get("error"), record.logs)


def _run_all(db, tasks, most):
    by_name = {task.identifier: task for task in list_of(tasks)}
    attempts = []
    yield from execute(db, "SELECT FROM pulse_tap.sweep_due()")
    while attempt := (yield from _run_next(db, by_name)):
        attempts.append(attempt)
        if len(attempts) > most:
            raise RuntimeError(f"run_jobs() has run {most} jobs: does a job add itself again?")
    return attempts


def _freeze(db):
    try:
        yield from execute(db, "SELECT pulse_tap.freeze()")
    except Exception as error:
        if sqlstate(error)[0] != "3F000":
            raise
        raise NoExtension("the database of the tests has no extension pg_pulse_tap", "3F000",
                          "CREATE EXTENSION pg_pulse_tap CASCADE") from error


class Trial:
    """A test in the transaction of this connection, which the caller rolls back. Where the calls of
    the connection are awaited, so are run_jobs() and travel(), and freeze() comes first."""

    def __init__(self, db: Database) -> None:
        self.db = db
        if not _is_async(db):
            self.freeze()

    def freeze(self) -> Any:
        """Time stands still from here on."""
        return perform(_freeze(self.db))

    def run_jobs(self, tasks: list[Task[..., Any]], most: int = _MAX_JOBS) -> Any:
        """Runs the due jobs of these tasks, one after the other, until none is due. Returns an
        Attempt for each."""
        return perform(_run_all(self.db, tasks, most))

    def travel(self, how_far: str) -> Any:
        """Moves time, by an interval of SQL."""
        return perform(execute(self.db, "SELECT pulse_tap.travel(%s::text::interval)", [how_far]))
