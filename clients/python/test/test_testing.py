"""Tests with the real handlers, in a transaction that is rolled back."""
import asyncio
import contextlib
import datetime

import drivers
import psycopg
import pytest
from pg_pulse import Failure, JsonText, NoExtension, NotJson, add_job, task
from pg_pulse.testing import Trial

pytest_plugins = ["pg_pulse.pytest_plugin"]


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left():
    with psycopg.connect(autocommit=True) as db:
        db.execute("CREATE TABLE mail (purchase int PRIMARY KEY)")
        count = "SELECT count(*) FROM pulse.job"
        before = db.execute(count).fetchone()
        yield
        assert db.execute(count).fetchone() == before
        assert db.execute("SELECT count(*) FROM mail").fetchone() == (0,)
        db.execute("DROP TABLE mail")


def shop(db):
    @task
    def letter(payload: dict[str, int], job):
        print("to", payload["purchase"])
        job.progress(0.5, message="half")
        db.execute("INSERT INTO mail VALUES (%s)", [payload["purchase"]])
        add_job(db, "thanks", payload)
        return {"sent": payload["purchase"]}

    @task
    async def thanks():
        await asyncio.sleep(0)
        return JsonText('{"exact": 1.10}')

    return [letter, thanks]


def test_jobs_run_with_their_handlers_and_their_jobs_run_too(pulse):
    add_job(pulse.db, "letter", {"purchase": 1})
    add_job(pulse.db, "other")
    letter, thanks = pulse.run_jobs(shop(pulse.db))
    assert (letter.task, letter.attempt, letter.payload, letter.state, letter.result,
            letter.error, letter.logs) == (
        "letter", 1, {"purchase": 1}, "completed", {"sent": 1}, None, [("info", "to 1")])
    assert (thanks.state, thanks.result) == ("completed", {"exact": 1.1})
    assert pulse.db.execute("SELECT * FROM mail").fetchall() == [(1,)]


def test_a_failed_attempt_leaves_no_rows_and_time_travels_to_the_next(pulse):
    add_job(pulse.db, "letter", {"purchase": 1})
    add_job(pulse.db, "letter", {"purchase": 1}, max_attempts=2)
    [failed] = [each for each in pulse.run_jobs(shop(pulse.db)) if each.error]
    assert (failed.state, failed.attempt) == ("ready", 1)
    assert "duplicate key" in failed.error
    assert pulse.run_jobs(shop(pulse.db)) == []
    pulse.travel("1 hour")
    [again] = pulse.run_jobs(shop(pulse.db))
    assert (again.state, again.attempt) == ("failed", 2)


def test_transactions_of_handlers_are_savepoints_and_end_the_job_exactly_once(pulse):
    db = pulse.db

    @task
    def letter(payload, job):
        with db.transaction():
            db.execute("INSERT INTO mail VALUES (2)")
            job.fence(db)
            job.complete(db, "paid")

    @task
    def steps():
        with db.transaction(force_rollback=True):
            db.execute("INSERT INTO mail VALUES (3)")

    add_job(db, "letter")
    add_job(db, "steps")
    assert [each.state for each in pulse.run_jobs([letter, steps])] == ["completed"] * 2
    assert db.execute("SELECT purchase FROM mail").fetchall() == [(2,)]


def test_ends_by_the_words_of_the_library_and_checkpoints(pulse):
    @task
    def steps(payload, job):
        if job.attempt > 1:
            raise Failure("no more", retry=False)
        if not job.last_checkpoint:
            job.checkpoint(JsonText('{"n": 1.10}'))
            return job.snooze(60)
        assert job.last_checkpoint_text == '{"n": 1.10}'
        raise Failure("the rest", payload=["rest"], retry_in=60)

    add_job(pulse.db, "steps", ["all"])
    seen = []
    for _ in range(3):
        seen += pulse.run_jobs([steps])
        pulse.travel("61 s")
    assert [(each.state, each.attempt, each.payload) for each in seen] == [
        ("snoozed", 1, ["all"]), ("ready", 1, ["all"]), ("failed", 2, ["rest"])]


@pytest.mark.parametrize("is_undone", [True, False])
def test_a_job_whose_transaction_is_undone_has_failed(pulse, is_undone):
    @task
    def letter(payload, job):
        with pulse.db.transaction(force_rollback=is_undone):
            job.progress(0.5)
            job.complete(pulse.db)

    letter.add(pulse.db)
    [attempt] = pulse.run_jobs([letter])
    assert (attempt.state, attempt.error) == (
        ("ready", "its transaction did not commit") if is_undone else ("completed", None))


def raised_in_async(error):
    async def letter():
        raise error
    return letter


@pytest.mark.parametrize("error", [ValueError("two\0 words"), SystemExit("two\0 words"),
                                   asyncio.CancelledError("two\0 words")])
def test_whatever_a_handler_raises_fails_the_attempt_with_its_text(pulse, error):
    def letter():
        raise error

    for handler in (letter, raised_in_async(error)):
        add_job(pulse.db, "letter")
        [attempt] = pulse.run_jobs([task(handler)])
        assert attempt.state == "ready"
        assert attempt.error.endswith(": two\ufffd words")


def test_a_time_limit_of_the_test_ends_the_run():
    async def main():
        async with await psycopg.AsyncConnection.connect() as db:
            @task
            async def letter():
                asyncio.current_task().cancel()
                await asyncio.sleep(0)

            await letter.add(db)
            try:
                await Trial(db).run_jobs([letter])
            finally:
                await db.rollback()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())


def trial_of(db):
    @task
    def letter(payload):
        if payload["purchase"] == 2:
            raise ValueError("declined")

    for purchase in (1, 2):
        letter.add(db, {"purchase": purchase})
    return [each.state for each in Trial(db).run_jobs([letter])]


def test_a_connection_of_psycopg2():
    psycopg2 = pytest.importorskip("psycopg2")
    db = psycopg2.connect("")
    assert trial_of(db) == ["completed", "ready"]
    db.rollback()
    db.close()


def test_a_connection_of_django():
    connection = drivers.django_connection()
    from django.db import transaction
    with transaction.atomic():
        assert trial_of(connection) == ["completed", "ready"]
        transaction.set_rollback(True)
    connection.close()


def test_a_session_of_sqlalchemy():
    sqlalchemy = pytest.importorskip("sqlalchemy")
    from sqlalchemy.orm import Session
    engine = sqlalchemy.create_engine("postgresql+psycopg2://")
    with Session(engine) as session:
        assert trial_of(session) == ["completed", "ready"]
        session.rollback()
    engine.dispose()


def test_a_connection_whose_calls_are_awaited():
    async def main():
        async with await psycopg.AsyncConnection.connect() as db:
            @task
            async def letter(payload):
                await db.execute("INSERT INTO mail VALUES (%s)", [payload["purchase"]])

            trial = Trial(db)
            await trial.freeze()
            later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=2)
            await letter.add(db, {"purchase": 1}, run_at=later)
            assert await trial.run_jobs([letter]) == []
            await trial.travel("5 days")
            [attempt] = await trial.run_jobs([letter])
            await db.rollback()
            return attempt.state
    assert asyncio.run(main()) == "completed"


def test_an_async_task_in_an_async_test_is_refused_with_the_way_out(pulse):
    @task
    async def letter():
        await asyncio.sleep(0)

    async def main():
        letter.add(pulse.db)
        with pytest.raises(RuntimeError, match="await asyncio.to_thread.pulse.run_jobs, tasks"):
            pulse.run_jobs([letter])

    async def main_in_thread():
        letter.add(pulse.db)
        [attempt] = await asyncio.to_thread(pulse.run_jobs, [letter])
        return attempt.state
    assert asyncio.run(main_in_thread()) == "completed"
    asyncio.run(main())


@pytest.mark.parametrize("name", ["complete", "fence"])
def test_a_call_of_the_job_that_is_not_awaited_fails_the_job(name):
    async def main():
        async with await psycopg.AsyncConnection.connect() as db:
            @task
            async def letter(payload, job):
                if payload == "refused":
                    with contextlib.suppress(NotJson):
                        await job.complete(db, {"a set"})
                    return
                call = getattr(job, name)(db)
                if payload == "awaits":
                    await call
                call.close()

            for payload in ("refused", "awaits", "forgets"):
                await letter.add(db, payload)
            attempts = await Trial(db).run_jobs([letter])
            await db.rollback()
            return attempts
    refused, awaits, forgets = asyncio.run(main())
    assert [refused.state, awaits.state, forgets.state] == ["completed", "completed", "failed"]
    assert forgets.error.startswith(f"{name}() was not awaited: await job.{name}(…)")


def test_a_database_without_pg_pulse_tap_is_told_what_to_install():
    with psycopg.connect(autocommit=True) as db:
        db.execute("CREATE DATABASE untested_python")
    with psycopg.connect(dbname="untested_python") as db:
        with pytest.raises(NoExtension, match="no extension pg_pulse_tap\nHINT: CREATE EXTENSION"):
            Trial(db)
