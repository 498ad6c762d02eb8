"""Routes print() and logging of a handler to the log of its job, however many jobs run at once."""
import contextlib
import contextvars
import io
import logging
import sys
import threading


class _Nowhere(io.TextIOBase):
    """In place of a standard stream that was closed before Python began: there Python has None."""

    def write(self, text):
        return len(text)


_plain_stdout = sys.stdout or _Nowhere()
# So much of a line waits for the end of the line.
_MAX_WAITING = 8 * 1024
# A handler may have threads, whose lines come whole.
_writing = threading.RLock()
# The job whose handler runs.
current = contextvars.ContextVar("pg_pulse_job", default=None)


def say(text, prefix=""):
    """Writes lines, each with the prefix, outside of the logs of jobs."""
    # A stream that is closed, by its reader or by a handler, ends neither jobs nor the worker.
    with contextlib.suppress(OSError, ValueError):
        # One write: print() writes the end of the line by itself, and another thread comes between.
        _plain_stdout.write("".join([f"{prefix}{line}\n" for line in text.split("\n")]))
        _plain_stdout.flush()


def _current_job():
    job = current.get()
    return None if job is None or job.is_over else job


class _Stream:
    """A standard stream whose lines belong to the job of the handler that writes."""

    def __init__(self, plain, level):
        self._plain, self._level = plain, level

    def write(self, text):
        job = _current_job()
        if job is None:
            return self._plain.write(text)
        with _writing:
            self._print(job, text)
        return len(text)

    def _print(self, job, text):
        waiting = job.unfinished_lines = job.unfinished_lines or {}
        text = waiting.get(self._level, "") + text
        lines, _, rest = text.rpartition("\n")
        if len(rest) > _MAX_WAITING:
            lines, rest = text, ""
        waiting[self._level] = rest
        for line in filter(None, lines.split("\n")):
            job.log(line, self._level)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def __getattr__(self, name):
        return getattr(self._plain, name)


def finish_lines(job):
    """Logs what the handler has printed behind the last end of a line."""
    if job.unfinished_lines:
        with _writing:
            for level, text in job.unfinished_lines.items():
                if text:
                    job.log(text, level)


def _level_of(record):
    return next((name for name in ("error", "warning", "info")
                 if record.levelno >= getattr(logging, name.upper())), "debug")


def route():
    """Begins to route; returns a function that ends it."""
    plain = sys.stdout, sys.stderr
    routed = [_Stream(stream or _Nowhere(), level)
              for stream, level in zip(plain, ("info", "warning"))]
    streams = [*plain, *routed]
    plain_emit = logging.StreamHandler.emit

    def emit(handler, record):
        job = _current_job()
        if job is None or handler.stream not in streams:
            return plain_emit(handler, record)
        return job.log(handler.format(record), _level_of(record))

    # Handlers of logging that the application has made write to streams from before.
    logging.StreamHandler.emit = emit
    sys.stdout, sys.stderr = routed

    def undo():
        sys.stdout, sys.stderr = plain
        logging.StreamHandler.emit = plain_emit

    return undo
