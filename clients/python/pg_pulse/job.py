"""The job that a handler gets. A port carries what the job says of itself, as members of a line of
the worker protocol: to the lines of a program, the calls of a worker, or those of a test."""
import json
from datetime import datetime, timedelta
from typing import Any

from .calls import LEFT_OUT, execute, perform
from .document import Encoded, NotRead, bounded, encode, member_text, seconds_of
from .types import Database

_TIMES = {"created_at", "run_at", "scheduled_for"}
_MAX_MESSAGE = 1024
# As the worker bounds a text.
_MAX_LOG_BYTES = 4000


# A text as the server stores texts.
def _shown(text):
    return text if text is None else str(text)[:_MAX_MESSAGE].replace("\0", "").encode(
        errors="replace").decode()


class JobCancelled(Exception):
    """Why a handler is to end: cancelled, timeout, stall, unreachable, lost or shutdown."""

    reason: str
    grace: float

    def __init__(self, reason, grace):
        super().__init__(f"the job is to end: {reason}")
        self.reason, self.grace = reason, grace


class Snooze(Exception):
    """The end of an attempt that is given back."""


class Unread:
    """Stands for a payload that Python does not read."""

    def __init__(self, error):
        self.error = error


class Job:
    """One attempt. `id` and `token` are texts; `attempt` begins with 1."""
    attempt: int
    crashes: int
    created_at: datetime
    database: str | None
    flags: list[str] | None
    identifier: str
    job_key: str | None
    last_error: str | None
    max_attempts: int
    parents: list[dict[str, Any]] | None
    priority: int
    queue_name: str | None
    recovered: str | None
    run_at: datetime
    scheduled_for: datetime | None
    token: str
    traceparent: str | None
    worker_id: str
    worker_name: str
    # The reason, once the job is to end.
    cancelled: JobCancelled | None = None
    is_over = is_completed = False
    # What the handler has asked for, and has no answer yet.
    unanswered = frozenset()
    # Ends an async handler.
    end_handler = None
    # By level what the handler has printed behind the last end of a line.
    unfinished_lines = None

    def __init__(self, port, message, text):
        self._port, self._document, self._text = port, message["job"], text
        self.identifier = self._document.get("identifier")
        # Names the job among those of the program, as the worker has written it.
        self.key, self.payload = message["id"], message["payload"]

    def __getattr__(self, name):
        if name not in Job.__annotations__:
            raise AttributeError(f"a job has no {name}")
        value = self._document.get(name)
        if name == "parents" and value:  # ids are texts, as everywhere
            return [parent | {"id": str(parent["id"])} for parent in value]
        return datetime.fromisoformat(value) if value and name in _TIMES else value

    @property
    def id(self) -> str:
        return str(self._document["id"])

    @property
    def payload_text(self) -> str:
        """The payload as the producer has spelled it, with every digit."""
        return member_text(self._text, "payload")

    @property
    def last_checkpoint(self) -> Any:
        """The checkpoint of an earlier attempt; None without one."""
        return self._document.get("checkpoint")

    @property
    def last_checkpoint_text(self) -> str:
        return member_text(member_text(self._text, "job"), "checkpoint")

    def cancel(self, reason, grace):
        """Tells the handler to end: an async one at its next await, others by `cancelled`."""
        self.cancelled = JobCancelled(reason, grace)
        if self.end_handler:
            self.end_handler()

    def progress(self, fraction: float | None, *, message: object = None,
                 stage: object = None) -> None:
        """Reports a fraction from 0 to 1, and what is being done."""
        if fraction is not None and not 0 <= (fraction := float(fraction)) <= 1:
            raise ValueError(f"progress is a fraction from 0 to 1, and not {fraction:g}")
        members = {"progress": fraction, "message": _shown(message), "stage": _shown(stage)}
        self._tell({name: value for name, value in members.items() if value is not None})

    def checkpoint(self, value: object) -> None:
        """Stores a value that the next attempt gets as last_checkpoint."""
        self._tell({"checkpoint": Encoded(value, "the checkpoint")})

    def log(self, text: object, level: str = "info") -> None:
        """Writes a text, as one line, to the log of the worker with this job. print() does so
        line by line, and logging record by record."""
        self._tell({"log": bounded(str(text), _MAX_LOG_BYTES), "level": level})

    def _tell(self, members):
        self._port.tell(self, members)

    def snooze(self, seconds: float | timedelta, *, checkpoint: object = LEFT_OUT) -> Any:
        """Gives the attempt back: return or raise what comes back."""
        end = Snooze()
        end.pg_pulse_end = {"snooze": seconds_of(seconds, "the delay")}
        if checkpoint is not LEFT_OUT:
            end.pg_pulse_end["checkpoint"] = checkpoint
        return end

    def fence(self, db: Database) -> Any:
        """Ties the connection's transaction to this claim: COMMIT fails if the claim is lost."""
        return self._perform("fence", self._ask(
            db, "fence(%s::text::bigint, %s::text::bigint)"))

    def complete(self, db: Database, result: object = None) -> Any:
        """Completes the job in the connection's transaction: exactly once in your database."""
        return self._perform("complete", self._complete(db, result))

    def _complete(self, db, result):
        document = None if result is None else encode(result, "the result")
        yield from self._ask(
            db, "complete(%s::text::bigint, %s::text::bigint, %s::json)", document)
        self.is_completed = True

    def _perform(self, name, steps):
        self.unanswered |= {name}
        return perform(self._answered(name, steps))

    # A coroutine that nobody has awaited is closed, and has no answer.
    def _answered(self, name, steps):
        try:
            yield from steps
        except GeneratorExit:
            raise
        except BaseException:
            self.unanswered -= {name}
            raise
        self.unanswered -= {name}

    def _ask(self, db, call, *more):
        yield from execute(db, f"SELECT FROM pulse.{call}", [self.id, self.token, *more])


def unread(error, key, **job):
    """The line of a job whose payload Python does not read, with what comes before the payload."""
    return {"id": key, "payload": Unread(error), "job": job}


def claimed(port, job_id, token, text):
    """The job of a row of a claim; `text` is the whole claimed_job."""
    try:
        document = json.loads(text)
    except NotRead as error:
        identifier = json.loads(member_text(text, "identifier"))
        return Job(port, unread(error, job_id, id=job_id, token=token, identifier=identifier), text)
    job = document | {"id": job_id, "token": token, "attempt": document["attempts"]}
    return Job(port, {"id": job_id, "payload": document["payload"], "job": job},
               f'{{"payload":{member_text(text, "payload")},"job":{text}}}')
