"""Tasks that do nothing: a program with the library for Python (the argument `library`), or the
loop of worker/examples/process.py."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "clients/python"))


def library():
    from pg_pulse import task, work

    @task
    def no_op(payload):
        pass

    @task
    async def no_op_async(payload):
        pass

    work([no_op, no_op_async], takes=100)


def say(messages):
    text = memoryview("".join(json.dumps(message) + "\n" for message in messages).encode())
    while text:
        text = text[os.write(1, text):]


def process():
    say([{"takes": 100}])
    rest = b""
    while chunk := os.read(0, 1 << 20):
        *lines, rest = (rest + chunk).split(b"\n")
        say([{"id": message["id"], "result": None} for message in map(json.loads, lines)])


library() if sys.argv[1:] == ["library"] else process()
