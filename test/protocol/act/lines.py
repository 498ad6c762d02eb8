"""Answers of the task `act` in lines of JSON, for a program and for a persistent process."""
import json
import threading

from act import End, Told, Work, parse, spell


def readable(text):
    """Without bytes that are no UTF-8: a line of the protocol has none."""
    return json.dumps(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


class Lines:
    """`job_of` reads the job's id in a message; `write` takes bytes, of one thread at a time."""

    def __init__(self, job_of, write):
        self.job_of, self.write = job_of, write
        self.lock = threading.Lock()
        self.told = {}  # events by job: the worker wants an answer soon
        self.threads = []

    def say(self, job, **members):
        line = "".join(f', "{name}": {text}' for name, text in members.items())
        with self.lock:
            self.write(f'{{"id": "{job}"{line}}}\n'.encode())

    def serve(self, lines):
        """Runs the jobs of the lines, a thread for each, until the lines and the jobs end."""
        for line in lines:
            message = parse(line)
            job = self.job_of(message)
            if "cancel" in message:
                if job in self.told:
                    self.told[job].set()
                continue
            self.told[job] = threading.Event()
            thread = threading.Thread(target=self.answer, args=(job, message), daemon=True)
            self.threads.append(thread)
            thread.start()
        for thread in self.threads:
            thread.join()

    def answer(self, job, message):
        document = message["job"]
        work = Work(job, document["attempt"], document["checkpoint"],
                    lambda fraction: self.say(job, progress=fraction),
                    lambda text: self.say(job, checkpoint=text), self.told[job].is_set)
        try:
            self.say(job, result=work.run(message["payload"]) or "null")
        except Told:
            self.say(job, error='"told to end"')
        except End as end:
            self.say(job, **self.members_of(end))
        del self.told[job]

    @staticmethod
    def members_of(end):
        if end.kind == "snooze":
            return {"snooze": spell(end.value)}
        if end.kind == "rest":
            return {"error": readable(end.error()), "payload": spell(end.value)}
        retry = "false" if end.kind == "fail_for_good" else "true"
        return {"error": readable(end.error()), "retry": retry}
