"""A shop with types. It is checked, and not run: what is accepted here is promised."""
from dataclasses import dataclass

import psycopg
from pg_pulse import (
    AddJobOnceRow, AddOptions, ClaimLost, Failure, Job, JobRow, PulseError, Task, Unique, add_flow,
    add_job, cancel_job, ended, schedule, task, unique_key, work)
from pg_pulse.testing import Trial


@dataclass
class Purchase:
    purchase: int


@task
def receipt(payload: Purchase, job: Job) -> dict[str, str]:
    if payload.purchase < 0:
        raise Failure("there is no such purchase", retry=False)
    job.progress(0.5, message=f"attempt {job.attempt + 1}")
    return {"total": "20"}


@task("mail", takes=4, unique={"for": "1 day", "by": ["purchase"]})
async def mail(payload: Purchase) -> int:
    return payload.purchase


def buy(db: psycopg.Connection[tuple[int]], options: AddOptions) -> list[str]:
    once: Unique = {"for": 60}
    added = add_job(db, "receipt", {"purchase": 7}, **options)
    row: JobRow = added
    new: AddJobOnceRow = add_job(db, "receipt", {"purchase": 7}, unique=once, **options)
    one: AddJobOnceRow = mail.add(db, Purchase(7), unique=once)
    either: JobRow | AddJobOnceRow = receipt.add(db, {"purchase": 7}, queue_name="mail/ada")
    if isinstance(either, JobRow):
        print(either.run_at)
    flow = add_flow(db, [{"key": "one", "identifier": "page"},
                         {"identifier": "book", "after": ["one", row.id, 17]}])
    schedule(db, "nightly", "receipt", cron="0 3 * * *", payload={"purchase": 1})
    cancel_job(db, row.id, reason="paid")
    [end] = ended(db, [row.id])
    print(end.result, unique_key({"a": 1}))
    return [row.id, new.id, one.id, either.id, *(job.id for job in flow)]


async def buy_async(db: psycopg.AsyncConnection[tuple[int]]) -> str:
    try:
        row: JobRow = await add_job(db, "receipt", {"purchase": 7})
        either: JobRow | AddJobOnceRow = await receipt.add(db, {"purchase": 7})
        return row.id + either.id
    except ClaimLost as error:
        return error.hint or ""
    except PulseError as error:
        return error.code or ""


def test_receipt(db: psycopg.Connection[tuple[int]]) -> None:
    trial = Trial(db)
    trial.run_jobs([receipt, mail])
    # A task is called as the function that it was.
    total: dict[str, str] = receipt(Purchase(7), trial.db)
    print(total)


TASKS: list[Task[..., object]] = [receipt, mail]
work(TASKS, takes=20, name="shop", grace=1.5)
