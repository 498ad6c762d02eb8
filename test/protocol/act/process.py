#!/usr/bin/env python3
"""The task `act` as a persistent process of pulse-worker: a thread for each job, lines of JSON."""
import json
import os
import sys
import threading

from act import End, Told, Work, parse, spell

lock = threading.Lock()
told = {}  # events by job: the worker wants an answer soon


def say(job, **members):
    line = "".join(f', "{name}": {text}' for name, text in members.items())
    data = memoryview(f'{{"id": "{job}"{line}}}\n'.encode())
    with lock:
        while data:
            data = data[os.write(1, data):]


def readable(text):
    """Without bytes that are no UTF-8: a line of the protocol has none."""
    return json.dumps(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def answer(message):
    job, document = message["id_text"], message["job"]
    checkpoints = {}
    work = Work(job, document["attempt"], document["checkpoint"],
                lambda fraction: say(job, progress=fraction),
                lambda text: (checkpoints.update(checkpoint=text), say(job, checkpoint=text)),
                told[job].is_set)
    try:
        say(job, result=work.run(message["payload"]) or "null")
    except Told:
        say(job, error='"told to end"')
    except End as end:
        if end.kind == "snooze":
            say(job, snooze=spell(end.value))
        elif end.kind == "rest":
            say(job, error=readable(end.error()), payload=spell(end.value))
        else:
            say(job, error=readable(end.error()),
                retry="false" if end.kind == "fail_for_good" else "true")
    del told[job]


for line in sys.stdin:
    message = parse(line)
    if "cancel" in message:
        if message["id_text"] in told:
            told[message["id_text"]].set()
    else:
        told[message["id_text"]] = threading.Event()
        threading.Thread(target=answer, args=(message,), daemon=True).start()
