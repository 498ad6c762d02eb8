"""work(): runs jobs as a program of pulse-worker, or without pulse-worker in the direct mode. A
call that raises leaves nothing behind: a program may try again for as long as it likes."""
import contextlib
import functools
import os
import signal
import stat
import sys
from collections.abc import Iterable
from typing import Any

from .document import list_of, seconds_of
from .errors import VERSION
from .handlers import Handlers
from .output import route, say
from .program import Program
from .task import Task, jobs_at_once

# Each handler that is not async has a thread, and often a connection of its own.
_TAKES = 20
_GRACE = 25  # seconds
# Handlers of the direct mode have not ended in time.
_FORCED = 75
# In place of the descriptor, for processes that the application starts.
_TAKEN = "taken"
# In sys.modules: which copy of the library runs the jobs.
_OWNER = "pg_pulse runs jobs"
# What happens in a process that a handler forks.
_in_child = []


def _tasks_by_name(tasks):
    by_name = {}
    for task in list_of(tasks):
        if not hasattr(task, "identifier"):
            raise TypeError("work() takes a list of what @task makes")
        if task.identifier in by_name:
            raise TypeError(f"work() has the task {task.identifier} twice")
        task.check()
        by_name[task.identifier] = task
    if not by_name:
        raise TypeError("work() has no task to serve")
    return by_name


def _take_descriptor():
    """The descriptor of the socket to the worker; None where no worker started the program."""
    text = os.environ.get("PULSE_FD")
    if text is None:
        return None
    if text == _TAKEN:
        raise RuntimeError("a pulse-worker runs the jobs in the program that has started this "
                           "process: a process of its own for them is another --program")
    os.environ["PULSE_FD"] = _TAKEN
    try:
        is_socket = stat.S_ISSOCK(os.fstat(int(text)).st_mode)
    except OSError:
        is_socket = False
    if not is_socket:
        raise RuntimeError(f"descriptor {text} is no socket of a pulse-worker: what stands between "
                           "both must hand the descriptor on")
    return int(text)


# Python forgets no hook of fork(), so one is for all calls of work().
@functools.cache
def _watch_forks():
    os.register_at_fork(after_in_child=lambda: [act() for act in _in_child])


def _direct(handlers, connection, name, grace):
    try:
        from .direct.worker import Direct
    except ImportError as error:
        raise RuntimeError(
            "a pulse-worker starts this program, and runs its jobs here: pulse-worker --database "
            "NAME --program 'python3 -m pg_pulse MODULE'. Without pulse-worker the program needs a "
            "driver: pip install psycopg") from error
    return Direct(handlers, connection, name, grace)


@contextlib.contextmanager
def _signals(direct):
    before = {each: signal.signal(each, lambda *_: direct.stop())
              for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except BaseException:
        # Where work() returns the process ends, and a second signal is to do nothing.
        for each, handler in before.items():
            signal.signal(each, handler or signal.SIG_DFL)
        raise


def _serve(handlers, port):
    _watch_forks()
    _in_child[:] = handlers.in_child, port.in_child
    with contextlib.nullcontext() if isinstance(port, Program) else _signals(port):
        is_ended = port.serve()
    if is_ended is False:
        say("pg_pulse: handlers have not ended in time, and end with the process")
        os._exit(_FORCED)


def work(tasks: Iterable[Task[..., Any]], *, takes: int = _TAKES, name: str | None = None,
         connection: str = "", grace: float = _GRACE) -> None:
    """Runs the jobs of these tasks until the worker is to leave. `takes`: so many jobs at once;
    `name`: for the log. Under pulse-worker --program that is all; else the direct mode has
    `connection`, as psycopg takes it, and `grace` for the handlers at the end, in seconds."""
    by_name = _tasks_by_name(tasks)
    jobs_at_once(takes)
    grace = seconds_of(grace, "grace")
    if _OWNER in sys.modules:
        raise RuntimeError(f"work() of pg_pulse {sys.modules[_OWNER]} has the jobs of this "
                           "program: give all tasks to one call")
    fd = _take_descriptor()
    sys.modules[_OWNER] = VERSION
    stop_routing = route()
    handlers = Handlers(by_name, takes)
    try:
        _serve(handlers, _direct(handlers, connection, name or "pg_pulse", grace) if fd is None
               else Program(fd, handlers, name))
    finally:
        handlers.end()
        _in_child.clear()
        stop_routing()
        del sys.modules[_OWNER]
