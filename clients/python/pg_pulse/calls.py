"""Calls of the schema pulse. The connection of the caller, and so the transaction of the caller,
runs the statement."""
import contextlib
import itertools
import json
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from functools import cache
from inspect import isawaitable
from typing import Any

from .document import encode, list_of
from .errors import VERSION, no_extension, other_version, translate
from .types import Database, JobSpec, Unique
from .unique import unique_key

# Of an argument that the caller has not given.
LEFT_OUT = type("LeftOut", (), {"__repr__": lambda _: "..."})()


@dataclass(frozen=True, eq=False)
class Function:
    """A function of SQL. `gives`: row, rows, value, values or nothing."""
    name: str
    gives: str
    takes: dict
    row: type | None = None
    columns: str = ""
    type: str = ""
    is_procedure: bool = False


# --- any driver, awaited or not ---

def perform(steps):
    """The result of a generator that yields what a driver returns; a coroutine with the result
    where the driver returns awaitables."""
    try:
        said = next(steps)
        while not isawaitable(said):
            said = steps.send(said)
    except StopIteration as end:
        return end.value
    return _perform_awaiting(steps, said)


async def _perform_awaiting(steps, said):
    while True:
        try:
            go_on, value = steps.send, await said if isawaitable(said) else said
        except BaseException as error:
            go_on, value = steps.throw, error
        try:
            said = go_on(value)
        except StopIteration as end:
            return end.value


def _cursor_of(db):
    """A cursor, and whether the caller is to close the cursor."""
    if hasattr(db, "pgresult"):  # a cursor of psycopg 3 gives whatever rows it was made for
        db = db.connection
    with contextlib.suppress(TypeError):  # a connection of asyncpg wants more
        if callable(getattr(db, "cursor", None)):
            cursor = db.cursor()
            if hasattr(cursor, "pgresult"):
                cursor.row_factory = lambda _: tuple
            return cursor, True
        if hasattr(db, "fetchall"):
            return db, False
    raise TypeError(f"a {type(db).__module__}.{type(db).__qualname__} is no connection: give a "
                    "connection or cursor of psycopg, Django or SQLAlchemy")


def _in_style_of(dialect, text):
    """The text with placeholders as the driver of SQLAlchemy reads them: a statement that comes as
    a text goes to the driver as it is."""
    if dialect.paramstyle in ("format", "pyformat"):
        return text
    if dialect.paramstyle == "numeric_dollar":
        numbers = itertools.count(1)
        return re.sub("%s", lambda _: f"${next(numbers)}", text)
    raise TypeError(
        f"the driver {dialect.driver} has placeholders of the style {dialect.paramstyle}, which "
        "pg_pulse does not write: give SQLAlchemy postgresql+psycopg, +psycopg2 or +asyncpg")


def execute(db, text, values=()):
    """Steps with the rows of a statement, each in the order of its columns."""
    try:
        if callable(getattr(db, "get_bind", None)):  # a session of SQLAlchemy
            db = yield db.connection()
        if hasattr(db, "exec_driver_sql"):
            # SQLAlchemy 1.4 may commit by the words of a text, and has none for a function.
            text = _in_style_of(db.dialect, text)
            result = yield db.exec_driver_sql(
                text, tuple(values), execution_options={"autocommit": True})
            return [tuple(row) for row in result] if result.returns_rows else []
        cursor, is_connection = _cursor_of(db)
        yield cursor.execute(text, tuple(values))
        # In a pipeline the description comes with the rows.
        has_rows = text.startswith(("SELECT", "CALL")) and not text.startswith("SELECT FROM")
        rows = (yield cursor.fetchall()) if has_rows else []
        if is_connection:
            yield cursor.close()
        return [tuple(row.values()) if isinstance(row, dict) else row for row in rows]
    except Exception as error:
        if found := translate(error):
            raise found from error
        raise


# --- statements ---

def array_literal(values):
    def element(value):
        return "NULL" if value is None else '"{}"'.format(
            str(value).replace("\\", "\\\\").replace('"', '\\"'))
    return f"{{{','.join(map(element, values))}}}"


def interval(seconds):
    """An interval of SQL: a server reads no 1e-07."""
    return f"{seconds:f} seconds"


# The server would read such a time in the time zone of whatever session adds the job.
def _check_zone(value, name):
    if isinstance(value, date) and getattr(value, "utcoffset", lambda: None)() is None:
        raise ValueError(f"{name} is {value}, without a time zone: give one, as "
                         "datetime.now(timezone.utc) has")


def _checked_job(job):
    if not isinstance(job, Mapping):
        raise TypeError("a job is a dict with identifier, payload and so on, and "
                        f"{reprlib.repr(job)} is given")
    for name in ("run_at", "start_by"):
        _check_zone(job.get(name), name)
    lists = {name: list_of(job[name]) for name in ("flags", "after") if job.get(name) is not None}
    return dict(job) | lists


def _job_specs(specs):
    """By turns a job without its payload, and the payload."""
    texts = []
    for spec in map(_checked_job, list_of(specs)):
        for name in spec.keys() - JobSpec.__annotations__.keys():
            raise TypeError(f"a job has no {name}: it has {', '.join(JobSpec.__annotations__)}")
        payload = spec.pop("payload", LEFT_OUT)
        texts += [encode(spec, "the job"),
                  None if payload is LEFT_OUT else encode(payload, "the payload")]
    return array_literal(texts)


# A parameter as text, which every driver sends as it is.
def _parameter(kind, value, name):
    if kind == "json":
        return encode(value, "the payload" if name == "payload" else name)
    if kind == "pulse.job_spec[]":
        return _job_specs(value)
    if value is None:
        return None
    if kind.endswith("[]"):
        return array_literal(list_of(value))
    if kind == "interval" and isinstance(value, timedelta):
        value = value.total_seconds()
    if kind == "interval" and isinstance(value, (int, float)):
        return interval(value)
    _check_zone(value, name)
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _placeholder(kind):
    if kind in ("json", "text"):
        return f"%s::{kind}"
    if kind != "pulse.job_spec[]":
        return f"%s::text::{kind}"
    # What takes a payload out of a document reads the payload, and refuses "\u0000" in it.
    return ("ARRAY(SELECT ROW(r.identifier, p.payload::json, r.queue_name, r.run_at, "
            "r.max_attempts, r.job_key, r.priority, r.flags)::pulse.job_spec "
            "FROM (SELECT u.n, u.value AS spec, lead(u.value) OVER (ORDER BY u.n) AS payload "
            "FROM unnest(%s::text::text[]) WITH ORDINALITY AS u (value, n)) AS p, "
            "json_populate_record(NULL::pulse.job_spec, p.spec::json) AS r "
            "WHERE mod(p.n, 2) = 1 ORDER BY p.n)")


@cache
def _statement(function, given):
    arguments = ", ".join(f"{name} => {_placeholder(function.takes[name])}" for name in given)
    invoked = f"pulse.{function.name}({arguments})"
    if function.is_procedure:
        return f"CALL {invoked}"
    if function.gives == "nothing":
        return f"SELECT FROM {invoked}"
    columns = f"SELECT {function.columns} FROM {invoked} AS value"
    return f"SELECT row_to_json(r)::text FROM ({columns}) AS r"


@cache
def _times(row):
    return [each.name for each in fields(row) if each.type == datetime | None]


def _time(text):
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):  # NULL; infinity, and years that Python does not have
        return text


def _row(function, text):
    members = json.loads(text)
    if not function.row:
        return _time(members["value"]) if function.type == "timestamptz" else members["value"]
    for name in _times(function.row):
        members[name] = _time(members[name])
    return function.row(**members)


def _steps(db, function, values):
    given = tuple(name for name, value in values.items() if value is not LEFT_OUT)
    parameters = [_parameter(function.takes[name], values[name], name) for name in given]
    rows = yield from execute(db, _statement(function, given), parameters)
    if function.gives == "nothing":
        return None
    if function.is_procedure:
        return rows[0][0]
    found = [_row(function, text) for text, in rows]
    if function.gives in ("rows", "values"):
        return found
    # A function without a row to give gives a row of nulls.
    return found[0] if found and found[0] != _empty(function.row) else None


@cache
def _empty(row):
    return row and row(**{each.name: None for each in fields(row)})


def call(db, function, positional, options=()):
    """The result of a function of SQL; where `db` is asynchronous a coroutine with the result."""
    values = dict(zip(function.takes, positional)) | dict(options)
    for name in values.keys() - function.takes.keys():
        raise TypeError(f"{function.name} has no option {name}: it has "
                        + ", ".join(list(function.takes)[len(positional):]))
    return perform(_steps(db, function, values))


# --- what more than names and types is to be known of ---

def once_arguments(identifier, payload, unique, **options):
    """The arguments of add_job_once() for an add_job() with `unique`."""
    if not isinstance(unique, Mapping) or "for" not in unique \
            or unique.keys() - Unique.__annotations__.keys():
        raise TypeError(f"unique has for, by and states, and is {unique}")
    key = unique_key({} if payload is LEFT_OUT else payload, unique.get("by"))
    return options | {"unique_for": unique["for"], "unique_key": key, "identifier": identifier,
                      "payload": payload, "states": unique.get("states", LEFT_OUT)}


def flow_document(jobs):
    """In `after` a text is the key of a job of the flow; all else is the id of a job."""
    jobs = [_checked_job(job) for job in list_of(jobs)]
    keys = {job.get("key") for job in jobs}
    for job in jobs:
        if job.get("after") is not None:
            job["after"] = [each if each in keys or not str(each).isdecimal() else int(each)
                            for each in job["after"]]
    return jobs


VERSIONS = "SELECT extversion::text FROM pg_extension WHERE extname = 'pg_pulse'"


def checked_version(rows):
    """The version of the extension, from the rows of VERSIONS. Raises as check_version()."""
    if not rows:
        raise no_extension()
    [[version]] = rows
    if version.split(".")[:2] != VERSION.split(".")[:2]:
        raise other_version(version)
    return version


def _check(db):
    return checked_version((yield from execute(db, VERSIONS)))


def check_version(db: Database) -> Any:
    """The version of the extension. Raises where the database has none, or one that this library
    is not made for."""
    return perform(_check(db))
