"""Wrong uses, all of which mypy refuses: mypy tells of a comment that has nothing to ignore."""
import psycopg
from pg_pulse import AddJobOnceRow, Failure, JobRow, add_flow, add_job, add_jobs, task, work


@task
def receipt(payload: dict[str, int]) -> int:
    return payload["purchase"]


def buy(db: psycopg.Connection[tuple[int]]) -> None:
    add_job(db, "receipt", {}, queue="mail")  # type: ignore[call-overload]
    add_job(db, "receipt", {}, priority="high")  # type: ignore[call-overload]
    add_job(db, 17, {})  # type: ignore[call-overload]
    number: int = add_job(db, "receipt").id  # type: ignore[assignment]
    add_job(db, "receipt").is_new  # type: ignore[attr-defined]
    add_jobs(db, [{"queue_name": "mail"}])  # type: ignore[typeddict-item]
    add_flow(db, [{"identifier": "a", "starts_when": "done"}])  # type: ignore[typeddict-item]
    receipt.add(db, {}, queue="mail")  # type: ignore[call-overload]
    receipt.add(db, {}, priority="high")  # type: ignore[call-overload]
    row: JobRow = receipt.add(db, {})  # type: ignore[assignment]
    once: AddJobOnceRow = receipt.add(db, {}, unique={"by": ["a"], "per": 1})  # type: ignore
    receipt.add(db, {}).is_new  # type: ignore[union-attr]
    receipt({"purchase": "seven"})  # type: ignore[dict-item]
    text: str = receipt({"purchase": 7})  # type: ignore[assignment]
    Failure("no", again=False)  # type: ignore[call-arg]
    task("receipt", concurrency=4)  # type: ignore[call-overload]
    work(receipt)  # type: ignore[arg-type]
    work([receipt], concurrency=4)  # type: ignore[call-arg]
    print(number, row, once, text)


async def buy_async(db: psycopg.AsyncConnection[tuple[int]]) -> None:
    add_job(db, "receipt").id  # type: ignore[attr-defined]
    receipt.add(db, {}).id  # type: ignore[attr-defined]
