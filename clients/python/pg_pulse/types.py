"""Types of arguments."""
from collections.abc import Awaitable, Iterable
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

# Ids have 64 bits. The library gives ids as texts.
Id: TypeAlias = str | int
# An interval of SQL ("1 day"), or seconds.
Interval: TypeAlias = str | float | timedelta
# A cursor or connection of DB-API with %s, a connection of Django, or one of SQLAlchemy.
Database: TypeAlias = Any


class AsyncDatabase(Protocol):
    """A cursor or connection whose calls are awaited."""

    def execute(self, query: Any, params: Any = ..., /) -> Awaitable[Any]: ...


class _Task(TypedDict):
    identifier: str


class JobSpec(_Task, total=False):
    """An element of add_jobs()."""
    payload: Any
    queue_name: str | None
    run_at: datetime | str | None
    max_attempts: int | None
    job_key: str | None
    priority: int | None
    flags: list[str] | None


class AddOptions(TypedDict, total=False):
    """What add_job() takes by name, beside `unique`."""
    queue_name: str | None
    run_at: datetime | str | None
    max_attempts: int | None
    job_key: str | None
    priority: int | None
    flags: Iterable[str] | None
    job_key_mode: str | None


class FlowJob(JobSpec, total=False):
    """An element of add_flow(). `after`: keys of jobs of the flow, and ids of other jobs."""
    key: str
    after: Iterable[Id]
    job_key_mode: str | None
    starts_when: Literal["completed", "ended", "failed"]
    start_by: datetime | str | None


# Once in a period: the key is the payload, or the members of the payload that `by` names.
Unique = TypedDict("Unique", {"for": Interval, "by": list[str], "states": list[str]}, total=False)
