#!/usr/bin/env python3
"""The task `act` as a program of pulse-worker: a thread for each job, lines of JSON on a socket."""
import json
import os
import socket
import threading

from act import End, Told, Work, parse, spell

worker = socket.socket(fileno=int(os.environ["PULSE_FD"]))
lock = threading.Lock()
told = {}  # events by job: the worker wants an answer soon


def write(text):
    with lock:
        worker.sendall((text + "\n").encode())


def say(job, **members):
    write(f'{{"id": "{job}"' + "".join(f', "{k}": {text}' for k, text in members.items()) + "}")


def readable(text):
    """Without bytes that are no UTF-8: a line of the protocol has none."""
    return json.dumps(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def answer(message):
    job, document = message["id"], message["job"]
    work = Work(job, document["attempt"], document["checkpoint"],
                lambda fraction: say(job, progress=fraction),
                lambda text: say(job, checkpoint=text), told[job].is_set)
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
    told.pop(job, None)


write('{"hello": {"protocol": 1, "takes": 2, "tasks": {"act": {}}}}')
threads = []
for line in worker.makefile():
    message = parse(line)
    if "cancel" in message:
        if message["cancel"] in told:
            told[message["cancel"]].set()
    else:
        told[message["id"]] = threading.Event()
        threads.append(threading.Thread(target=answer, args=(message,), daemon=True))
        threads[-1].start()
for thread in threads:
    thread.join()
