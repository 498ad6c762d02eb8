"""Calls on a server: in transactions that are well and that are not, by every driver, through a
pooler, on databases of other versions. PGHOST and so on name the server of a superuser."""
import asyncio
import contextlib
import datetime
import os

import drivers
import pg_pulse
import psycopg
import pytest
from pg_pulse import add_job, calls
from pg_pulse.generated import functions

psycopg2 = pytest.importorskip("psycopg2")


@pytest.fixture
def db():
    with psycopg.connect() as connection:
        yield connection
        connection.rollback()


def jobs_of(identifier):
    with psycopg.connect(autocommit=True) as connection:
        return connection.execute(
            "SELECT id::text, payload, queue_name, state::text FROM pulse.job "
            "WHERE identifier = %s ORDER BY 1", [identifier]).fetchall()


def test_a_job_and_a_row_of_the_caller_are_one_transaction():
    with psycopg.connect() as connection:
        connection.execute("CREATE TABLE purchase (id int)")
    for purchase in (1, 2):
        try:
            with psycopg.connect() as connection:
                connection.execute("INSERT INTO purchase VALUES (%s)", [purchase])
                job = add_job(connection, "receipt", {"purchase": purchase}, queue_name="mail",
                              priority=3)
                assert isinstance(job.id, str) and isinstance(job.run_at, datetime.datetime)
                assert job.priority == 3
                if purchase == 2:
                    raise ValueError("declined")
                kept = job
        except ValueError:
            pass
    assert jobs_of("receipt") == [(kept.id, {"purchase": 1}, "mail", "parked")]


def in_django():
    connection = drivers.django_connection()
    from django.db import transaction
    with transaction.atomic():
        add_job(connection, "driver", {"by": "django"})
    with transaction.atomic(), connection.cursor() as cursor:
        add_job(cursor, "driver", {"by": "django's cursor"})
    with pytest.raises(ValueError), transaction.atomic():
        add_job(connection, "driver", {"by": "nobody"})
        raise ValueError
    connection.close()
    return ["django", "django's cursor"]


def in_sqlalchemy():
    sqlalchemy = pytest.importorskip("sqlalchemy")
    from sqlalchemy.orm import Session
    engine = sqlalchemy.create_engine("postgresql+psycopg2://")
    with engine.begin() as connection:
        job = add_job(connection, "driver", {"by": "sqlalchemy"})
        other = add_job(connection, "other")
        assert pg_pulse.cancel_job(connection, other.id, reason="none") == "cancelled"
    with Session(engine) as session, session.begin():
        add_job(session, "driver", {"by": "its session"})
    with Session(engine) as session:
        add_job(session, "driver", {"by": "nobody"})
    with engine.connect() as connection, pytest.raises(pg_pulse.OutOfRange):
        add_job(connection, "..")
    engine.dispose()
    assert job.payload == {"by": "sqlalchemy"}
    return ["its session", "sqlalchemy"]


def in_psycopg2():
    from psycopg2.extras import RealDictCursor
    connection = psycopg2.connect("")
    with connection, connection.cursor(cursor_factory=RealDictCursor) as cursor:
        add_job(connection, "driver", {"by": "psycopg2"})
        add_job(cursor, "driver", {"by": "psycopg2's cursor"})
    connection.close()
    return ["psycopg2", "psycopg2's cursor"]


def in_psycopg_with_rows_of_its_own():
    from psycopg.rows import class_row, dict_row

    class Row:
        pass

    def first(_):
        return lambda values: values[0]

    drivers = []
    with psycopg.connect() as connection:
        for factory in (class_row(Row), dict_row, first):
            connection.row_factory = factory
            drivers += [f"{len(drivers)}", f"{len(drivers)} its cursor"]
            add_job(connection, "driver", {"by": drivers[-2]})
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 AS kept")
                add_job(cursor, "driver", {"by": drivers[-1]})
                assert pg_pulse.cancel_job(cursor, add_job(cursor, "other").id) == "cancelled"
                pg_pulse.pause_queue(cursor, "rows")
                assert cursor.rowcount == 1
    return sorted(drivers)


def in_async_psycopg():
    async def main():
        async with await psycopg.AsyncConnection.connect() as connection:
            job = await add_job(connection, "driver", {"by": "await"})
            async with connection.cursor() as cursor:
                await add_job(cursor, "driver", {"by": "await cursor"})
            with pytest.raises(pg_pulse.OutOfRange):
                async with connection.transaction():
                    await add_job(connection, "..")
            assert await pg_pulse.check_version(connection)
            return job
    assert asyncio.run(main()).payload == {"by": "await"}
    return ["await", "await cursor"]


def in_sqlalchemy_that_commits_by_itself():
    sqlalchemy = pytest.importorskip("sqlalchemy")
    if not sqlalchemy.__version__.startswith("1.4"):
        pytest.skip("SQLAlchemy 2 begins a transaction")
    engine = sqlalchemy.create_engine("postgresql+psycopg2://")
    with engine.connect() as connection:
        add_job(connection, "driver", {"by": "itself"})
        with contextlib.suppress(ValueError), connection.begin():
            add_job(connection, "driver", {"by": "nobody"})
            raise ValueError
    engine.dispose()
    return ["itself"]


@pytest.mark.parametrize("use", [in_django, in_sqlalchemy, in_sqlalchemy_that_commits_by_itself,
                                 in_psycopg2, in_async_psycopg, in_psycopg_with_rows_of_its_own],
                         ids=lambda use: use.__name__)
def test_every_driver(use):
    psycopg.connect(autocommit=True).execute("DELETE FROM pulse.job WHERE identifier = 'driver'")
    wanted = use()
    assert sorted(payload["by"] for _, payload, _, _ in jobs_of("driver")) == wanted


def payload_texts(db, ids):
    rows = db.execute("SELECT payload::text FROM pulse.job WHERE id = ANY (%s::text[]::bigint[]) "
                      "ORDER BY id", [ids]).fetchall()
    return [text for text, in rows]


def test_a_payload_may_be_anything_of_json(db):
    payloads = [[1, [2]], "text", 7, False, None, {"a": {"b": "ü\u2028\""}},
                pg_pulse.JsonText('{"n": 1.10}'), datetime.date(2026, 1, 2), "\0"]
    texts = ["[1,[2]]", '"text"', "7", "false", "null", '{"a":{"b":"ü\u2028\\""}}', '{"n": 1.10}',
             '"2026-01-02"', '"\\u0000"', "{}"]
    ids = [add_job(db, "any", payload).id for payload in payloads] + [add_job(db, "any").id]
    assert payload_texts(db, ids) == texts
    specs = [{"identifier": "any", "payload": payload} for payload in payloads]
    rows = pg_pulse.add_jobs(db, specs + [{"identifier": "any"}])
    assert payload_texts(db, [row.id for row in rows]) == texts


def test_a_payload_that_is_no_json_adds_nothing(db):
    circle = []
    circle.append(circle)
    for payload in (circle, float("nan"), {1, 2}, b"bytes", object(), {"n": float("inf")}):
        with pytest.raises(pg_pulse.NotJson, match="the payload is no JSON"):
            add_job(db, "refused", payload)
    db.commit()
    assert jobs_of("refused") == []


def test_a_transaction_that_has_failed_is_read_only_or_over_adds_nothing_and_says_so(db):
    with pytest.raises(psycopg.errors.DivisionByZero):
        db.execute("SELECT 1/0")
    with pytest.raises(pg_pulse.Aborted, match="ROLLBACK, and repeat") as aborted:
        add_job(db, "none")
    assert isinstance(aborted.value.__cause__, psycopg.Error)
    db.rollback()
    db.execute("SET TRANSACTION READ ONLY")
    with pytest.raises(pg_pulse.ReadOnly, match="primary"):
        add_job(db, "none")
    db.rollback()
    closed = psycopg.connect()
    closed.close()
    with pytest.raises(psycopg.OperationalError, match="closed"):
        add_job(closed, "none")
    assert jobs_of("none") == []


def test_what_is_no_connection_is_refused_with_what_to_give(db):
    with pytest.raises(TypeError, match="give a connection or cursor of psycopg, Django or"):
        add_job("receipt", {})
    with pytest.raises(TypeError, match="add_job has no option queue: it has queue_name, run_at"):
        add_job(db, "mail", {}, queue="q")


def test_a_role_without_the_right_is_told_which_one(db):
    db.execute("CREATE ROLE stranger")
    db.execute("SET ROLE stranger")
    with pytest.raises(pg_pulse.NotGranted, match="grant_producer"):
        add_job(db, "none")


def test_the_errors_of_the_server_have_a_class_a_code_and_a_hint(db):
    with pytest.raises(pg_pulse.OutOfRange) as refused:
        add_job(db, "..")
    assert refused.value.code == "PU004"
    db.rollback()
    with pytest.raises(pg_pulse.NotFound):
        pg_pulse.cancel_job(db, 10**11)
    db.rollback()
    db.execute("SELECT 1")
    with pytest.raises(pg_pulse.InTransaction):
        pg_pulse.wait_for_end(db, [])


class Spy:
    """A cursor that notes what the library asks."""
    description = None

    def __init__(self, said):
        self.said = said

    def execute(self, text, values):
        self.said.append((text, values))

    def fetchall(self):
        return []


def test_an_id_beyond_2_53_reaches_the_server_digit_for_digit():
    said = []
    for job_id in ("9007199254740993", 9007199254740993):
        pg_pulse.ended(Spy(said), [job_id])
        pg_pulse.cancel_job(Spy(said), job_id)
    assert [values for _, values in said] == [('{"9007199254740993"}',), ("9007199254740993",)] * 2


def test_many_jobs_jobs_after_jobs_and_how_they_ended():
    with psycopg.connect(autocommit=True) as db:
        added = pg_pulse.add_jobs(db, [
            {"identifier": "many", "payload": [1], "queue_name": "q", "flags": ["a", "b"],
             "run_at": datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc)},
            {"identifier": "many", "job_key": "key"}])
        assert [(job.queue_name, job.run_at.year == 2100, job.flags, job.job_key)
                for job in added] == [("q", True, ["a", "b"], None), (None, False, None, "key")]
        after = pg_pulse.add_job_after(db, [job.id for job in added], "after", {"n": 1},
                                       starts_when="ended")
        assert after.starts_when == "ended"
        flow = pg_pulse.add_flow(db, [
            {"identifier": "join", "after": ["a", "b", after.id]},
            {"key": "a", "identifier": "part", "payload": {"n": 1}},
            {"key": "b", "identifier": "part", "queue_name": "q"}], flow_name="flow")
        assert [row.key for row in flow] == [None, "a", "b"]
        assert pg_pulse.cancel_job(db, added[0].id, reason="no need") == "cancelled"
        assert pg_pulse.cancel_flow(db, flow[0].flow_id) == 3
        [end] = pg_pulse.ended(db, [added[0].id])
        assert (end.id, end.state) == (added[0].id, "cancelled")
        assert pg_pulse.wait_for_end(db, [added[0].id], max_wait=5) == 1
        assert pg_pulse.remove_job(db, "key").job_key == "key"
        assert pg_pulse.remove_job(db, "key") is None


def test_once_in_a_period_by_members_in_any_order(db):
    unique = {"for": "1 hour", "by": ["to", "kind"]}
    first = add_job(db, "digest", {"to": "ada", "kind": "day", "n": 1}, unique=unique)
    second = add_job(db, "digest", {"n": 2, "kind": "day", "to": "ada"},
                     unique=unique | {"by": ["kind", "to"]})
    assert (first.is_new, second.is_new, second.id) == (True, False, first.id)
    whole = {"for": datetime.timedelta(hours=1), "states": ["waiting"]}
    assert add_job(db, "digest", {"to": "bob"}, unique=whole).is_new
    assert not add_job(db, "digest", {"to": "bob"}, unique=whole).is_new
    assert pg_pulse.forget_once(db, "digest", pg_pulse.unique_key({"to": "bob"}))


def test_schedules_and_settings(db):
    stored = pg_pulse.schedule(db, "nightly", "report", cron="0 3 * * *",
                               time_zone="Europe/Berlin", payload={"n": 1})
    assert (stored.name, stored.payload) == ("nightly", {"n": 1})
    first, second = pg_pulse.next_runs(db, "nightly", max_runs=2)
    assert isinstance(first, datetime.datetime) and second > first
    assert pg_pulse.unschedule(db, "nightly") is True
    settings = pg_pulse.set_task(db, "report", timeout=90, keep_completed="1 day")
    assert settings.timeout == "00:01:30"
    assert pg_pulse.set_queue(db, "mail", concurrency=3).concurrency == 3


def test_each_call_is_a_statement_that_the_server_understands(db):
    described = {name: each for name, each in vars(functions).items()
                 if isinstance(each, calls.Function)}
    for name, function in described.items():
        assert name[1:] in functions.__all__
        text = calls._statement(function, tuple(function.takes))
        for n in range(1, len(function.takes) + 1):
            text = text.replace("%s", f"${n}", 1)
        db.execute("SELECT 1" if text.startswith("CALL") else f"PREPARE {name} AS {text}")
    assert len(described) > 40


def test_a_session_of_the_direct_mode_cuts_what_has_no_answer_in_time():
    from pg_pulse.direct.session import Session, is_cut

    async def main():
        session = Session("", None)
        with pytest.raises(psycopg.OperationalError) as cut:
            await session.query("SELECT pg_sleep(60)", within=0.01)
        assert is_cut(cut.value)
        assert await session.query("SELECT 1", within=60) == [(1,)]
        await session.end()
    asyncio.run(main())


def test_a_database_without_the_extension_or_with_another_version():
    with psycopg.connect(autocommit=True) as db:
        db.execute("CREATE DATABASE bare_python")
    with psycopg.connect(dbname="bare_python", autocommit=True) as db:
        for use in (pg_pulse.check_version, lambda db: add_job(db, "none")):
            with pytest.raises(pg_pulse.NoExtension, match="CREATE EXTENSION pg_pulse"):
                use(db)
        db.execute("CREATE EXTENSION pg_pulse VERSION '0.1.0'")
        for use in (pg_pulse.check_version, lambda db: add_job(db, "none"),
                    lambda db: add_job(db, "none", {}, unique={"for": "1 day"})):
            with pytest.raises(pg_pulse.OtherVersion, match="ALTER EXTENSION pg_pulse UPDATE"):
                use(db)
        db.execute("DROP EXTENSION pg_pulse")
        db.execute("CREATE EXTENSION pg_pulse")
        assert pg_pulse.check_version(db).startswith("0.2")
        db.execute("UPDATE pg_extension SET extversion = '0.9.0' WHERE extname = 'pg_pulse'")
        with pytest.raises(pg_pulse.OtherVersion, match=r"for pg_pulse 0\.2.*database has 0\.9\.0"):
            pg_pulse.check_version(db)


@pytest.mark.skipif("POOLER_HOST" not in os.environ, reason="no pgbouncer")
def test_through_a_transaction_pooler():
    pooler = {"host": os.environ.get("POOLER_HOST"), "port": os.environ.get("POOLER_PORT")}
    old = psycopg2.connect(**pooler)
    # As psycopg 3 asks for behind such a pooler.
    new = psycopg.connect(**pooler, prepare_threshold=None)
    for n in range(10):
        with old:
            add_job(old, "pooled", {"n": n})
        with new.transaction():
            add_job(new, "pooled", {"n": n})
    old.close()
    new.close()
    assert len(jobs_of("pooled")) == 20
