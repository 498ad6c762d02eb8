"""A task: a name, the handler of its jobs, and what the handler's payloads look like."""
import contextlib
import functools
import inspect
import json
import typing
from collections.abc import Awaitable, Callable
from typing import Any, Generic, ParamSpec, TypeVar, Unpack

from . import payload as payloads
from .calls import LEFT_OUT
from .document import encode, seconds_of
from .generated.functions import AddJobOnceRow, JobRow, add_job
from .job import Unread
from .types import AddOptions, AsyncDatabase, Database, Unique

# Each in a statement of its own: checkers of types read no other form.
P = ParamSpec("P")
R = TypeVar("R", covariant=True)
_MAX_TAKES = 10_000


def jobs_at_once(number):
    """A number of jobs, as the worker takes it."""
    if type(number) is int and 1 <= number <= _MAX_TAKES:
        return number
    raise ValueError(f"takes is {number!r}, and no number of jobs from 1 to {_MAX_TAKES:,}")


class Failure(Exception):
    """Fails the attempt: with retry=False for good, with retry_in not before so many seconds, with
    payload for the rest of the work."""

    def __init__(self, message: object, *, retry: Any = LEFT_OUT, retry_in: Any = LEFT_OUT,
                 payload: object = LEFT_OUT) -> None:
        super().__init__(message)
        # Read by name, so that a job may end by the words of another copy of the library.
        self.pg_pulse_end = {}
        if retry is not LEFT_OUT:
            self.pg_pulse_end["retry"] = bool(retry)
        if retry_in is not LEFT_OUT:
            self.pg_pulse_end["retry_in"] = seconds_of(retry_in, "retry_in")
        if payload is not LEFT_OUT:
            self.pg_pulse_end["payload"] = payload


class PayloadRefused(Failure):
    """A payload that the annotation refuses: each attempt would end alike."""


class Task(Generic[P, R]):
    """What @task makes of a function."""

    def __init__(self, handler, identifier, takes=None, unique=None):
        functools.update_wrapper(self, handler)
        if takes is not None:
            jobs_at_once(takes)
        self.handler, self.identifier, self.takes, self.unique = handler, identifier, takes, unique
        self.is_async = inspect.iscoroutinefunction(handler)
        signature = inspect.signature(handler)
        self._parameters = list(signature.parameters)
        self._arity = len(self._parameters)
        try:
            signature.bind(*(None, None)[:self._arity])
        except TypeError as error:
            raise TypeError(f"the handler of {identifier} is called with the payload, and with the "
                            f"job where it takes two arguments: {error}") from None
        with contextlib.suppress(NameError):  # of a class that comes later
            self.check()

    def __call__(self, *arguments: P.args, **options: P.kwargs) -> R:
        return self.handler(*arguments, **options)

    @functools.cached_property
    def _kind(self):
        return typing.get_type_hints(self.handler).get(next(iter(self._parameters), None), object)

    def check(self):
        """Raises where no payload can be checked against the annotation."""
        payloads.check(self._kind)

    def _converted(self, payload):
        try:
            return payloads.convert(self._kind, payload)
        except payloads.Refused as error:
            raise PayloadRefused(f"the payload of {self.identifier} is refused: {error}",
                                 retry=False) from None

    def handle(self, job):
        """Calls the handler with the payload, and with the job where the handler takes two."""
        if isinstance(job.payload, Unread):
            raise PayloadRefused(f"the payload of {self.identifier} cannot be read: "
                                 f"{job.payload.error}", retry=False)
        if self._kind is not object:
            job.payload = self._converted(job.payload)
        return self.handler(*(job.payload, job)[:self._arity])

    # Without a `unique` of the call the task's own counts.
    @typing.overload
    def add(self, db: AsyncDatabase, payload: object = ..., *, unique: Unique,
            **options: Unpack[AddOptions]) -> Awaitable[AddJobOnceRow]: ...
    @typing.overload
    def add(self, db: Database, payload: object = ..., *, unique: Unique,
            **options: Unpack[AddOptions]) -> AddJobOnceRow: ...
    @typing.overload
    def add(self, db: AsyncDatabase, payload: object = ..., *, unique: None = ...,
            **options: Unpack[AddOptions]) -> Awaitable[JobRow | AddJobOnceRow]: ...
    @typing.overload
    def add(self, db: Database, payload: object = ..., *, unique: None = ...,
            **options: Unpack[AddOptions]) -> JobRow | AddJobOnceRow: ...
    def add(self, db, payload=LEFT_OUT, **options):
        """Adds a job of this task in the caller's transaction."""
        document = {} if payload is LEFT_OUT else json.loads(encode(payload, "the payload"))
        self._converted(document)
        return add_job(db, self.identifier, payload, **{"unique": self.unique} | options)


@typing.overload
def task(name: Callable[P, R]) -> Task[P, R]: ...
@typing.overload
def task(name: str | None = None, *, takes: int | None = None,
         unique: Unique | None = None) -> Callable[[Callable[P, R]], Task[P, R]]: ...
def task(name=None, *, takes=None, unique=None):
    """Defines a task: @task, or @task("name"). `takes`: so many jobs at once in one program;
    `unique`: of adds without a `unique` of their own."""
    if callable(name):
        return Task(name, name.__name__)
    return lambda handler: Task(handler, name or handler.__name__, takes, unique)
