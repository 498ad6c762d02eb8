#!/usr/bin/env python3
# Greets, a hundred jobs at a time: pulse-worker --process 'greet=worker/examples/process.py'
import json
import os

def greet(payload):
    return {"greeted": payload["name"]}

def answer(message):
    try:
        return {"id": message["id"], "result": greet(message["payload"])}
    except Exception as error:  # this job fails, the others do not
        return {"id": message["id"], "error": repr(error)}

def say(messages):
    text = memoryview("".join(json.dumps(message) + "\n" for message in messages).encode())
    while text:
        text = text[os.write(1, text):]

say([{"takes": 100}])
rest = b""
while chunk := os.read(0, 1 << 20):
    *lines, rest = (rest + chunk).split(b"\n")
    say([answer(message) for message in map(json.loads, lines) if "cancel" not in message])
