#!/usr/bin/env python3
"""A program of --program whose handlers do what the payload says. A file of settings says what the
process itself does. Each start reads the settings anew: that is how it gets new code."""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

settings = json.load(open(sys.argv[1]))
told = open(settings["told"], "a", buffering=1)
line_of_worker = socket.socket(fileno=int(os.environ["PULSE_FD"]))
lock = threading.Lock()
stops = {}
reading = {"gate": None}  # a gate to wait for before the next line is read


def tell(*words):
    told.write(" ".join(map(str, words)) + "\n")


def say(**members):
    write(json.dumps(members))


def write(text):
    write_bytes((text + "\n").encode())


def write_bytes(data):
    with lock:
        line_of_worker.sendall(data)


def wait_for_gate(name, stop):
    while not os.path.exists(name) and not stop.is_set():
        time.sleep(0.02)


def run(message, stop):
    key, job, payload = message["id"], message["job"], message["payload"] or {}
    tell("began", key, message["task"], job["attempt"], os.getpid(), settings.get("version", 1))
    deed = payload.get("do", "answer")
    if deed == "wait":
        wait_for_gate(payload["gate"], stop)
    elif deed == "deaf":
        wait_for_gate(payload["gate"], threading.Event())
    elif deed == "obey":
        stop.wait()
        return say(id=key, error="stopped: " + stop.reason)
    elif deed == "die":
        print("no luck", file=sys.stderr, flush=True)
        os._exit(7)
    elif deed == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif deed == "large":
        return say(id=key, result="x" * (1 << 21))
    elif deed == "wrong":
        return write('{"id":"%s","progress":7,"result":1}' % key)
    elif deed == "speak":
        print("to stdout")
        print("to stderr", file=sys.stderr)
        say(id=key, log="for the log\nof the job", level="warning")
    elif deed == "complete":
        query = "SELECT pulse.complete(%s, %s)" % (job["id"], job["token"])
        subprocess.run(["psql", "-XAtqd", payload["database"], "-c", payload["before"] + query])
        return say(id=key, done=True)
    elif deed == "close":
        line_of_worker.shutdown(socket.SHUT_RDWR)
        threading.Event().wait()
    elif deed == "twice":
        say(id=key, result=1)
        say(id="12345678901234567890", result=1)
    elif deed == "half":
        write_bytes(b'{"id":"%s","res' % key.encode())
        os._exit(7)
    elif deed == "latin":
        return write_bytes(b'{"id":"%s","result":"\xff"}\n' % key.encode())
    elif deed == "number":
        write('{"id":9007199254740993,"result":1}')
    elif deed == "late":
        stop.wait()
        say(id=key, result="in spite of " + stop.reason)
    elif deed == "fork":
        if os.fork():
            return
        tell("forked", key, os.getpid())
        say(id=key, result="of the child")
        threading.Event().wait()
    elif deed == "unread":
        reading["gate"] = payload["gate"]
    elif deed == "hello":
        say(hello={"protocol": 1, "tasks": {"more": {}}})
    say(id=key, result={"task": message["task"], "pid": os.getpid(), "names": sorted(os.environ)})


def work(message):
    stop = threading.Event()
    stops[message["id"]] = stop
    run(message, stop)
    stops.pop(message["id"], None)


def main():
    tell("started", os.getpid(), settings.get("version", 1))
    for line in settings.get("before", []):
        write(line)
    if "exit" in settings:
        print("broken", file=sys.stderr, flush=True)
        os._exit(settings["exit"])
    if "hello" in settings:
        say(hello=settings["hello"])
    for line in line_of_worker.makefile():
        if reading["gate"]:
            wait_for_gate(reading["gate"], threading.Event())
        message = json.loads(line)
        if "cancel" in message:
            stop = stops.get(message["cancel"])
            if stop:
                stop.reason = message["reason"]
                stop.set()
        else:
            threading.Thread(target=work, args=(message,), daemon=True).start()
    while stops:
        time.sleep(0.02)
    tell("ended", os.getpid(), settings.get("version", 1))


main()
