# A process that stays and does nothing: answers for everything that has arrived with one write.
import json
import os


def say(text):
    rest = memoryview(text.encode())
    while rest:
        rest = rest[os.write(1, rest):]


say('{"takes": 500}\n')
rest = b""
while block := os.read(0, 1 << 20):
    *lines, rest = (rest + block).split(b"\n")
    messages = map(json.loads, lines)
    say("".join(f'{{"id": {m["id"]}, "result": null}}\n' for m in messages if "id" in m))
