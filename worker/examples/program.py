#!/usr/bin/env python3
# Greets, and writes to logs, a hundred jobs at a time:
#   pulse-worker --program worker/examples/program.py
import json
import os
import socket

def greet(payload, job):
    return {"greeted": payload["name"]}

def note(payload, job):
    say({"id": job["id"], "log": payload["text"], "level": "info"})

handlers = {"greet": greet, "note": note}
worker = socket.socket(fileno=int(os.environ["PULSE_FD"]))

def say(message):
    worker.sendall((json.dumps(message) + "\n").encode())

def answer(message):
    try:
        result = handlers[message["task"]](message["payload"], message["job"])
        return {"id": message["id"], "result": result}
    except Exception as error:  # this job fails, the others do not
        return {"id": message["id"], "error": repr(error)}

say({"hello": {"protocol": 1, "takes": 100, "tasks": {task: {} for task in handlers}}})
for line in worker.makefile():
    message = json.loads(line)
    if "cancel" not in message:
        say(answer(message))
