#!/usr/bin/python3
"""worker/examples/session_worker.py, with the steps of `act` in place of its checksum."""
# A job keeps the program busy, and no silence counts for a worker that lives as its session does.
# without: 1.4 2.5 2.6 2.7 8.1 8.2
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "act"))
import psycopg.types.json
from act import End, Work, parse, spell

psycopg.types.json.set_json_loads(parse)


def act(db, job, token, payload):
    """Ends the job itself where the example has no word for the end: then "stale" follows."""
    def ask(query, *values):
        return db.execute(f"SELECT * FROM pulse.{query}", values).fetchone()
    [attempt, checkpoint] = db.execute(
        "SELECT attempts, checkpoint FROM pulse.held_job(%s, %s)", [job, token]).fetchone()
    work = Work(job, attempt, checkpoint,
                lambda fraction: ask("progress(%s, %s, fraction => %s)", job, token, fraction),
                lambda text: ask("progress(%s, %s, checkpoint => %s)", job, token, text))
    try:
        result = work.run(payload)
    except End as end:
        if end.kind == "fail_for_good":
            ask("fail(%s, %s, %s, false)", job, token, end.error())
        elif end.kind == "rest":
            ask("fail(%s, %s, %s, payload => %s)", job, token, end.error(), spell(end.value))
        elif end.kind == "snooze":
            ask("snooze(%s, %s, %s * interval '1 s')", job, token, float(end.value))
        raise
    if result is not None:
        ask("complete(%s, %s, %s)", job, token, result)


def example(replacements):
    with open(os.path.join(HERE, "../../../worker/examples/session_worker.py"),
              encoding="utf-8") as file:
        text = file.read()
    fault = os.environ.get("ACT_FAULT")  # of ../faults
    for old, new in [*replacements.items(), *([fault.split(" => ")] if fault else [])]:
        if text.count(old) != 1:
            raise SystemExit(f"session_worker.py: the example has {old!r} not once")
        text = text.replace(old, new)
    return text


exec(example({
    "'{checksum}'": "'{act}'",
    'hashlib.sha256(pathlib.Path(payload["path"]).read_bytes()).hexdigest()':
        "act(db, job, token, payload)",
    'db.execute("INSERT INTO checksum VALUES (%s, %s)", [job, digest])': "pass"}))
