"""A program of the library for Python whose handlers do what the payload says. The file that
TOLD_FILE names gets a line for each event of a handler."""
import asyncio
import atexit
import contextvars
import dataclasses
import datetime
import decimal
import logging
import os
import signal
import subprocess
import sys
import threading
import time

import psycopg
from pg_pulse import Failure, JobCancelled, JsonText, task

GATE_SECONDS = 0.02


def tell(*words):
    with open(os.environ["TOLD_FILE"], "a", encoding="utf-8") as told:
        told.write(" ".join(map(str, words)) + "\n")


def wait_for_gate(gate, job=None):
    while not os.path.exists(gate):
        if job and job.cancelled:
            raise job.cancelled
        time.sleep(GATE_SECONDS)


def raise_(error):
    raise error


def circle():
    value = []
    value.append(value)
    return value


class Hostile(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


class Elusive(Exception):
    def __getattr__(self, name):
        raise RuntimeError(f"no {name}")


def kill(where, payload, job):
    """The first attempt of a job is killed where the payload says."""
    if payload["dies"] == where and job.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)


# In one transaction: the effect, and the end of the job.
def complete_once(payload, job):
    with psycopg.connect() as connection:
        connection.execute("INSERT INTO effect VALUES (%s)", [job.id])
        kill("before the end", payload, job)
        job.complete(connection, {"by": "the handler"})
        kill("before the commit", payload, job)
        if payload["dies"] == "never commits":
            connection.rollback()
        connection.commit()
    kill("after the commit", payload, job)
    if "gate" in payload:
        job.progress(0.5)
        wait_for_gate(payload["gate"])


def obey(job):
    while not job.cancelled:
        time.sleep(GATE_SECONDS)
    tell("told", job.id, job.cancelled.reason)
    raise job.cancelled


def report(job):
    job.progress(0.5, message="half", stage="copy")
    job.checkpoint({"at": job.attempt})
    if job.attempt == 1:
        raise ValueError("once more")
    return job.last_checkpoint


def lines(payload, job):
    wait_for_gate(payload["gate"])
    texts = [f"line {n} of job {job.id}" for n in range(1, payload["count"] + 1)]
    for n, text in enumerate(texts, int(job.id)):
        say = print if n % 2 else logging.getLogger("acts").info
        say(text)
        time.sleep(int(job.id) % 3 / 1000)


# Behind ten calls.
def stack(text, calls=10):
    if not calls:
        raise ValueError(text)
    stack(text, calls - 1)


def stacks(payload, job):
    for n in range(1, payload["count"] + 1):
        try:
            stack(f"stack {n}")
        except ValueError:
            logging.getLogger("acts").exception("of job %s", job.id)
    print("behind the stacks")


def fork():
    said = subprocess.run(["ls", "-l", "/proc/self/fd"], capture_output=True, text=True,
                          check=True, stdin=subprocess.DEVNULL, close_fds=False).stdout
    subprocess.Popen(["tail", "-f", "/dev/null"], stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True)
    return {"sockets": said.count("socket:"), "descriptor": os.environ["PULSE_FD"]}


def fork_and_return(job):
    child = os.fork()
    if child:
        tell("forked", job.id, child)
        os.waitpid(child, 0)
    else:  # its next file has the number of the socket of the worker
        with open(os.environ["TOLD_FILE"], "a", encoding="utf-8"):
            job.progress(0.5)
    return "parent" if child else "child"


def fork_itself():
    return subprocess.run([sys.executable, "-P", "-m", "pg_pulse", "acts"], stderr=subprocess.PIPE,
                          text=True, check=False).stderr


def after_its_end(job):
    def say():
        while not job.is_over:
            time.sleep(GATE_SECONDS)
        job.log("never told")
        print("behind the end")
    threading.Thread(target=contextvars.copy_context().run, args=[say]).start()


def ask(job):
    return {"id": job.id, "token": job.token, "attempt": job.attempt, "last": job.last_checkpoint,
            "text": job.payload_text, "at": job.run_at.year, "queue": job.queue_name,
            "key": job.job_key}


DEEDS = {
    "echo": lambda payload, job: payload["value"],
    "none": lambda payload, job: None,
    "nan": lambda payload, job: float("nan"),
    "decimal": lambda payload, job: decimal.Decimal("1.10"),
    "date": lambda payload, job: datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc),
    "set": lambda payload, job: {1},
    "large": lambda payload, job: "x" * (20 << 20),
    "circle": lambda payload, job: circle(),
    "exact": lambda payload, job: JsonText('{"n": 9007199254740993,\n"f": 1.10}'),
    "integer": lambda payload, job: 2**60 + 1,
    "ask": lambda payload, job: ask(job),
    "raise hostile": lambda payload, job: raise_(Hostile()),
    "raise elusive": lambda payload, job: raise_(Elusive()),
    "raise exit": lambda payload, job: sys.exit("bye"),
    "raise interrupt": lambda payload, job: raise_(KeyboardInterrupt()),
    "raise no exception": lambda payload, job: raise_("a text"),
    "raise error": lambda payload, job: raise_(ValueError("it broke ü\udcff")),
    "raise large": lambda payload, job: raise_(ValueError("y" * (3 << 20))),
    "raise deep": lambda payload, job: DEEDS["raise deep"](payload, job),
    "for good": lambda payload, job: raise_(Failure("no such address", retry=False)),
    "later": lambda payload, job: raise_(Failure("not now", retry_in=3600)),
    "rest": lambda payload, job: raise_(
        Failure("a part is left", payload={"do": "echo", "value": "rest"})),
    "large rest": lambda payload, job: raise_(Failure("a part", payload="z" * (2 << 20))),
    "snooze": lambda payload, job: (
        job.last_checkpoint or job.snooze(1e-7, checkpoint={"seen": True})),
    "snooze circle": lambda payload, job: job.snooze(0, checkpoint=circle()),
    "report": lambda payload, job: report(job),
    "beyond all": lambda payload, job: job.progress(50),
    "large checkpoint": lambda payload, job: job.checkpoint("c" * (2 << 20)),
    "gate": lambda payload, job: wait_for_gate(payload["gate"], job),
    "deaf": lambda payload, job: wait_for_gate(payload["gate"]),
    "obey": lambda payload, job: obey(job),
    "never": lambda payload, job: threading.Event().wait(),
    "fork": lambda payload, job: fork(),
    "fork and return": lambda payload, job: fork_and_return(job),
    "fork itself": lambda payload, job: fork_itself(),
    "after its end": lambda payload, job: after_its_end(job),
    "exit": lambda payload, job: os._exit(7),
    "complete": complete_once,
    "lines": lines,
    "stacks": stacks,
}


@task
def act(payload, job):
    tell("began", job.id, job.attempt, os.getpid())
    return DEEDS[payload["do"]](payload, job)


@task(takes=2)
def few(payload):
    wait_for_gate(payload["gate"])


@task("list")
def length(payload: list[int]):
    return len(payload)


@dataclasses.dataclass
class Letter:
    to: str
    sent: datetime.date | None = None
    copies: list[int] = dataclasses.field(default_factory=list)


@task
def checked(payload: Letter):
    assert payload.sent is None or isinstance(payload.sent, datetime.date)
    return payload.to


@task("await")
async def act_async(payload, job):
    tell("began", job.id)
    match payload["do"]:
        case "obey":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                tell("told", job.id, job.cancelled.reason)
                raise
        case "lines":
            while not os.path.exists(payload["gate"]):
                await asyncio.sleep(GATE_SECONDS)
            for n in range(1, payload["count"] + 1):
                print(f"line {n} of job {job.id}")
                await asyncio.sleep(int(job.id) % 3 / 1000)
        case "block":
            wait_for_gate(payload["gate"])
        case "exit":
            sys.exit("bye")
        case "complete":
            async with await psycopg.AsyncConnection.connect() as connection:
                await connection.execute("INSERT INTO effect VALUES (%s)", [job.id])
                await job.fence(connection)
                await job.complete(connection, "paid")
    return payload["do"]


print("started outside of jobs")
atexit.register(tell, "ended", os.getpid())
