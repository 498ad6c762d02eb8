"""Rules 4 and 5: jobs run, and end in each way."""
import json

from .kit import CONTINUE, STOP, scenario
from .steps import THROUGH_GATE, do


@scenario("4.1", "integers of 64 bits reach the work")
def integers(k):
    k.worker()
    numbers = [9223372036854775807, -9223372036854775808, 9007199254740993, 0]
    job = k.add(*({"write": number} for number in numbers))
    k.wait_completed(job)
    k.equal(k.wrote(job), numbers, "what the work wrote")


@scenario("4.1", "the digits of a fraction reach the work")
def digits(k):
    k.worker()
    spelled = ["0.10", "1234567890.12345678901234567890", "1E2"]
    job = k.add(payload="[" + ", ".join(f'{{"write": {text}}}' for text in spelled) + "]")
    k.wait_completed(job)
    k.equal(k.wrote(job), spelled, "what the work wrote")


@scenario("4.7", "texts reach the work: escapes of NUL, other planes, a megabyte")
def texts(k):
    k.worker()
    words = ["a\0b", "\u00fc \u2028 \U0001f600", "\\ \" \n \t", "x" * 1_000_000]
    job = k.add(*({"write": word} for word in words), {"result": words[0]})
    k.wait_completed(job)
    k.equal(json.loads(k.job(job)["result"]), words[0], "the result")
    wrote = k.wrote(job)
    k.equal(wrote[:3], words[:3], "what the work wrote")
    k.equal(len(wrote[3]), 1_000_000, "the length of the long text")


@scenario("4.2", "an attempt gets the checkpoint of the attempt before")
def checkpoints(k):
    k.worker()
    job = k.add({"once": do(checkpoint={"n": 9007199254740993}, fail="once")}, *do(write="again"))
    k.wait_completed(job)
    [line] = k.told(job)
    k.equal((line["checkpoint"], line["attempt"]), ({"n": 9007199254740993}, 2), "the 2nd attempt")


@scenario("4.3", "progress is told while a job runs")
def progress(k):
    k.worker()
    job = k.add(*do(progress=0.5, until="go"))
    k.wait(lambda: k.job(job).get("progress") == 0.5, "the job is half way", lambda: k.job(job))
    k.open("go")
    k.wait_completed(job)


def dies(k, *steps):
    k.worker()
    job = k.add(*steps, max_attempts=3)
    others = [k.add(*do(write="ran"), max_attempts=25) for _ in range(5)]
    k.wait_state(job, "failed", "quarantined")
    k.wait_completed(*others)
    k.check(k.job(job)["attempts"] <= 3, f"attempts of the deadly job: {k.job(job)}")
    k.check("completed" not in k.job(job)["outcomes"], "no attempt of the deadly job completes")


@scenario("4.4", "a job that kills what runs it ends, and no other job suffers")
def poison(k):
    dies(k, *do(signal="KILL"))


@scenario("4.4", "so does a job that lets its program exit")
def exits(k):
    dies(k, *do(exit=7))


def ends_late(k, outcome, *steps):
    worker = k.worker()
    job = k.add({"once": [*steps, *do(write="waits", until="go")]}, *do(write="again"))
    k.wait_wrote(job, "waits")
    k.wait(lambda: k.job(job)["outcomes"][:1] == [outcome], f"the attempt is {outcome}",
           lambda: k.job(job))
    k.open("go")
    k.wait_completed(job)
    k.equal(k.job(job)["outcomes"], [outcome, "completed"], "the job's attempts")
    k.equal(worker.starts, 1, "starts of the worker")


@scenario("4.5", "an attempt past its timeout does not complete")
def timeout(k):
    k.set_task(timeout="1 s")
    ends_late(k, "timed_out")


@scenario("4.6", "an attempt without progress for its stall_timeout does not complete")
def stall(k):
    k.set_task(stall_timeout="2 s")
    reports = [each for n in range(3) for each in do(progress=0.1 * n, wait=0.9)]
    ends_late(k, "stalled", *reports)


@scenario("5.1", "a result is kept as the work gave it, and the job completed once")
def results(k):
    k.worker()
    text = '{"n": 9223372036854775807, "d": 1.10, "t": "\\u00fc"}'
    job = k.add(payload=f'[{{"result": {text}}}]')
    large = k.add(*do(result="x" * 500_000))
    k.wait_completed(job, large)
    def spelled(result):
        return json.loads(result, parse_float=str)
    k.equal(spelled(k.job(job)["result"]), spelled(text), "the result")
    k.equal(len(json.loads(k.job(large)["result"])), 500_000, "the length of the long result")
    k.equal(k.job(job)["outcomes"], ["completed"], "the job's attempts")


@scenario("5.2", "a failure has its text, and is tried again until max_attempts")
def failures(k):
    k.worker()
    job = k.add(*do(write="ran", fail="no luck \u00fc"), max_attempts=2)
    row = k.wait_state(job, "failed")
    k.equal(row["outcomes"], ["failed", "failed"], "the job's attempts")
    k.equal(k.wrote(job), ["ran", "ran"], "the job's lines")
    k.check("no luck \u00fc" in row["last_error"], f"the last error is {row['last_error']!r}")


@scenario("5.3", "errors with NUL, invalid UTF-8 and a megabyte of text fail their job alone")
def hostile_errors(k):
    worker = k.worker()
    jobs = [k.add(*steps, max_attempts=1) for steps in (
        do(fail="left\0right"), do(garble="41fffe00c3"), do(fail="e" * 1_000_000), do(fail=""))]
    for job in jobs:
        row = k.wait_state(job, "failed")
        k.equal(row["outcomes"], ["failed"], "the job's attempts")
    for job, word in zip(jobs, ("right", "A", "eee")):
        k.check(word in k.job(job)["last_error"], f"{word} is in the error of job {job}")
    k.wait_completed(k.add(*do(write="next")))
    k.equal(worker.starts, 1, "starts of the worker")


@scenario("5.4", "a failure for good is not tried again")
def failures_for_good(k):
    k.worker()
    job = k.add(*do(fail_for_good="never"), max_attempts=5)
    row = k.wait_state(job, "failed")
    k.equal((row["attempts"], row["outcomes"]), (1, ["failed"]), "the job's attempts")
    k.check("never" in row["last_error"], f"the last error is {row['last_error']!r}")


@scenario("5.5", "a snoozed job runs again, with its attempt and checkpoint")
def snoozes(k):
    k.worker()
    job = k.add({"once": do(checkpoint=7, snooze=0.2)}, *do(write="again"), max_attempts=1)
    k.wait_completed(job)
    [line] = k.told(job)
    k.equal((line["attempt"], line["checkpoint"]), (1, 7), "attempt and checkpoint")


@scenario("5.6", "an outcome that comes too late is dropped, and the worker goes on")
def stale(k):
    worker = k.worker()
    job = k.add(*THROUGH_GATE)
    k.wait_wrote(job, "began")
    worker.signal(STOP)
    k.psql.value(f"SELECT pulse.requeue_job({job}, 'by the kit')")
    k.open("go")
    worker.signal(CONTINUE)
    k.wait_completed(job, k.add(*do(write="next")))
    k.equal(k.consumed(job), ["interrupted", "completed"], "the job's attempts")
    k.equal(worker.starts, 1, "starts of the worker")


@scenario("5.7", "the rest of a batch is the payload of the next attempt")
def rest(k):
    k.worker()
    job = k.add({"once": [{"rest": do(write="the rest")}]}, *do(write="all again"))
    k.wait_completed(job)
    k.equal(k.wrote(job), ["the rest"], "the job's lines")
    k.equal(k.job(job)["attempts"], 2, "the job's attempts")
