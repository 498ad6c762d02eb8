"""What calls refuse, and what a driver is told, without a server."""
import datetime
import re
import types

import pg_pulse
import pytest
from pg_pulse import calls, testing


@pytest.mark.parametrize("call, said", [
    (lambda: pg_pulse.add_jobs(None, ["x"]), "a job is a dict with .*, and 'x' is given"),
    (lambda: pg_pulse.add_flow(None, [7]), "a job is a dict with .*, and 7 is given"),
    (lambda: pg_pulse.add_job(None, "x", unique="1 day"), "unique has for, by and states, and is"),
    (lambda: pg_pulse.add_jobs(None, [{"identifier": "x", "paylod": 1}]), "has no paylod"),
    (lambda: pg_pulse.add_job(None, "x", unique={"by": ["a"]}), "unique has for, by and states"),
    (lambda: pg_pulse.add_job(None, "x", unique={"for": 1, "bye": []}), "unique has for, by and"),
    (lambda: pg_pulse.add_job(object(), "x"), "a builtins.object is no connection"),
])
def test_a_wrong_argument_is_refused(call, said):
    with pytest.raises(TypeError, match=said):
        call()


@pytest.mark.parametrize("value", ["12", b"12", 12, {}, {"12": 12}],
                         ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("call", [
    lambda value: pg_pulse.add_job(None, "x", flags=value),
    lambda value: pg_pulse.add_jobs(None, value),
    lambda value: pg_pulse.add_jobs(None, [{"identifier": "x", "flags": value}]),
    lambda value: pg_pulse.add_flow(None, value),
    lambda value: pg_pulse.add_flow(None, [{"identifier": "x", "after": value}]),
    lambda value: pg_pulse.add_flow(None, [{"identifier": "x", "flags": value}]),
    lambda value: pg_pulse.add_job_after(None, value, "x"),
    lambda value: pg_pulse.wait_for_end(None, value),
    lambda value: pg_pulse.unique_key({"a": 1}, value),
    lambda value: pg_pulse.work(value),
    lambda value: testing.Trial(AsyncDatabase).run_jobs(value),
])
def test_what_is_no_list_is_refused_wherever_a_list_is_taken(call, value):
    with pytest.raises(TypeError, match=re.escape(f"a list is wanted, and {value!r} is given")):
        call(value)


class AsyncDatabase:
    """Stands for a connection that is never asked."""
    async def execute(self):
        pass


def test_a_list_may_be_anything_that_has_elements():
    for each in (("a", "b"), {"a": 1, "b": 2}.keys(), (name for name in "ab")):
        [job] = calls.flow_document([{"identifier": "x", "after": each, "flags": None}])
        assert job == {"identifier": "x", "after": ["a", "b"], "flags": None}


class Sqlalchemy:
    """A connection of SQLAlchemy, whose driver notes what comes."""
    returns_rows = False

    def __init__(self, paramstyle):
        self.dialect = types.SimpleNamespace(paramstyle=paramstyle, driver="driver7")

    def exec_driver_sql(self, text, values, execution_options):
        self.told = text, values
        return self


def test_placeholders_are_those_of_the_driver():
    said = {}
    for style in ("format", "pyformat", "numeric_dollar"):
        db = Sqlalchemy(style)
        pg_pulse.unschedule(db, "100%s")
        said[style] = db.told
    assert said["format"] == said["pyformat"]
    assert "pulse.unschedule(name => %s::text)" in said["format"][0]
    assert "pulse.unschedule(name => $1::text)" in said["numeric_dollar"][0]
    assert {values for _, values in said.values()} == {("100%s",)}
    job = pg_pulse.Job(None, {"id": "7", "payload": 1, "job": {"id": 7, "token": "8"}}, "")
    job.complete(db, [1])
    assert db.told == ("SELECT FROM pulse.complete($1::text::bigint, $2::text::bigint, $3::json)",
                       ("7", "8", "[1]"))
    with pytest.raises(TypeError, match="the driver driver7 has placeholders of the style qmark"):
        pg_pulse.unschedule(Sqlalchemy("qmark"), "q")


@pytest.mark.parametrize("noon", [datetime.datetime(2100, 1, 1, 12), datetime.date(2100, 1, 1)])
def test_a_time_without_a_time_zone_is_refused(noon):
    for call in (lambda: pg_pulse.add_job(None, "x", run_at=noon),
                 lambda: pg_pulse.add_jobs(None, [{"identifier": "x", "run_at": noon}]),
                 lambda: pg_pulse.add_flow(None, [{"identifier": "x", "start_by": noon}])):
        with pytest.raises(ValueError, match=f"is {noon}, without a time zone"):
            call()
