"""The task `act` for workers in Python: does the steps of a payload. See ../README.md."""
import json
import os
import signal
import subprocess
import time

STEP = 0.02  # seconds between two readings of a gate


class Digits(str):
    """A number as the payload spells it, so that no digit is lost."""


class End(Exception):
    """An end that is no success: `kind` is fail, fail_for_good, garble, snooze or rest."""

    def __init__(self, kind, value):
        self.kind, self.value = kind, value
        super().__init__(self.error())

    def error(self):
        """The text of the failure, which a careless program would report as it is."""
        if self.kind == "garble":
            return bytes.fromhex(self.value).decode("utf-8", "surrogateescape")
        return "not all was done" if self.kind == "rest" else str(self.value)


class Told(Exception):
    """The worker told the work to end."""


def parse(text):
    return json.loads(text, parse_int=Digits, parse_float=Digits)


def spell(value):
    """JSON of what parse() read, with the digits of the payload."""
    if isinstance(value, Digits):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {spell(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(spell, value)) + "]"
    return json.dumps(value)


class Work:
    """One run of a job. A worker gives `progress` and `checkpoint`, and `is_told` where it can."""

    def __init__(self, job, attempt, checkpoint, progress, checkpoint_it, is_told=lambda: False):
        self.job, self.attempt, self.checkpoint = job, attempt, checkpoint
        self.progress, self.checkpoint_it, self.is_told = progress, checkpoint_it, is_told
        self.file = os.environ.get("ACT_FILE") or os.environ["PULSE_FILE"]
        self.result = None

    def run(self, steps):
        """Does the steps. Returns the result, None without one."""
        for step in steps:
            for kind, value in step.items():
                getattr(self, "do_" + kind)(value)
        return self.result

    def do_write(self, value):
        line = (f'{{"job": "{self.job}", "attempt": {self.attempt}, '
                f'"checkpoint": {spell(self.checkpoint)}, "wrote": {spell(value)}}}\n').encode()
        file = os.open(self.file, os.O_WRONLY | os.O_APPEND)
        os.write(file, line)
        os.close(file)

    def do_wait(self, seconds):
        self._wait(lambda: False, float(seconds))

    def do_until(self, gate):
        self._wait(lambda: os.path.exists(f"{self.file}.{gate}"), 120)

    def _wait(self, is_over, seconds):
        deadline = time.monotonic() + seconds
        while not is_over() and time.monotonic() < deadline:
            if self.is_told():
                raise Told
            time.sleep(STEP)
        # Also of work that was told while it slept, and whose gate is open by now.
        if self.is_told():
            raise Told

    @staticmethod
    def do_spin(seconds):
        deadline = time.monotonic() + float(seconds)
        while time.monotonic() < deadline:
            pass

    def do_once(self, steps):
        try:
            os.close(os.open(f"{self.file}.ran.{self.job}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        self.run(steps)

    def do_progress(self, fraction):
        self.progress(float(fraction))

    def do_checkpoint(self, value):
        self.checkpoint_it(spell(value))

    def do_result(self, value):
        self.result = spell(value)

    @staticmethod
    def do_add(steps):
        subprocess.run(
            ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-v", "payload=" + spell(steps)],
            input="SELECT FROM pulse.add_job('act', :'payload'::json)", text=True, check=True)

    @staticmethod
    def do_exit(code):
        os._exit(int(code))

    @staticmethod
    def do_signal(name):
        os.kill(os.getpid(), getattr(signal, "SIG" + name))
        signal.pause()

    def __getattr__(self, name):
        kind = name.removeprefix("do_")
        if kind not in ("fail", "fail_for_good", "garble", "snooze", "rest"):
            raise AttributeError(name)
        def end(value):
            raise End(kind, value)
        return end
