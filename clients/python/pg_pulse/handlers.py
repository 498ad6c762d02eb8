"""Runs handlers: async ones on an event loop in a thread of its own, others in threads. Threads
begin with the first job that needs them: a program that is refused leaves nothing behind.

Always holds: `ended` is called once for each job, with the end of its attempt, in any thread."""
import asyncio
import collections
import contextlib
import functools
import os
import queue
import threading

from . import ends
from .output import current, finish_lines


class _Threads:
    """At most so many threads, which live until end().

    Always holds: one thread has the turn, and waits for work; another is idle, unless there are as
    many as there may be. A thread that takes work gives the turn away, and takes the turn itself
    where its work is done before another thread has woken up."""

    def __init__(self, most):
        self._left, self._idle = most, collections.deque()
        self._work, self._turn = queue.SimpleQueue(), queue.SimpleQueue()
        self._turn.put(None)
        self._add()

    def start(self, *work):
        self._work.put(work)

    def end(self):
        """Each thread ends when its work is done."""
        self._work.put(None)

    def _add(self):
        self._left -= 1
        threading.Thread(target=self._run, name="pg_pulse", daemon=True).start()

    def _run(self):
        while True:
            self._idle.append(None)
            self._turn.get()
            work = self._work.get()
            if work is None:
                self._work.put(None)  # for the next thread
                self._turn.put(None)
                return
            act, *arguments = work
            self._idle.pop()
            if not self._idle and self._left:
                self._add()
            self._turn.put(None)
            act(*arguments)


class _Loop:
    """An event loop in a thread, which lives until end()."""

    def __init__(self):
        self._loop, self._coming = asyncio.new_event_loop(), collections.deque()
        self._running, self._is_ending = set(), False
        threading.Thread(target=self._run, name="pg_pulse loop", daemon=True).start()

    def start(self, *work):
        """Runs an async function, which gets the job first, and which the job's end cancels."""
        self._coming.append(work)
        if len(self._coming) == 1:
            self._loop.call_soon_threadsafe(self._start_coming)

    def end(self):
        """The loop ends when no function runs any more."""
        self._loop.call_soon_threadsafe(self._end)

    def _run(self):
        # What handlers have left behind is cancelled at the end.
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.get_loop()
            while not (self._is_ending and not self._running):
                # An exit within a task of asyncio, as wait_for() makes one, ends the task, and
                # leaves the loop, too.
                with contextlib.suppress(SystemExit, KeyboardInterrupt):
                    self._loop.run_forever()

    def _start_coming(self):
        while self._coming:
            self._start(*self._coming.popleft())

    def _start(self, act, job, *more):
        task = self._loop.create_task(act(job, *more))
        self._running.add(task)
        task.add_done_callback(self._has_ended)
        job.end_handler = lambda: self._loop.call_soon_threadsafe(task.cancel)
        if job.cancelled:
            job.end_handler()

    def _has_ended(self, task):
        self._running.discard(task)
        if self._is_ending:
            self._end()

    def _end(self):
        self._is_ending = True
        if not self._running:
            self._loop.stop()


class Handlers:
    def __init__(self, tasks, takes):
        self.tasks, self.takes, self._is_child = tasks, takes, False

    @functools.cached_property
    def _threads(self):
        return _Threads(self.takes)

    @functools.cached_property
    def _loop(self):
        return _Loop()

    def end(self):
        """Threads and loop end when their handlers have ended."""
        for name in ("_threads", "_loop"):
            if begun := vars(self).get(name):
                begun.end()

    def in_child(self):
        """In a process that a handler has forked."""
        current.set(None)
        self._is_child = True

    def start(self, job, ended):
        task = self.tasks[job.identifier]
        if task.is_async:
            self._loop.start(self._run_async, job, task, ended)
        else:
            self._threads.start(self._run, job, task, ended)

    def _run(self, job, task, ended):
        current.set(job)
        try:
            end = ends.of_value(job, task.handle(job))
        except BaseException as raised:
            end = ends.of_raised(raised)
        self._finish(job, end, ended)

    async def _run_async(self, job, task, ended):
        current.set(job)
        try:
            end = ends.of_value(job, await task.handle(job))
        except BaseException as raised:
            end = ends.of_raised(raised)
        self._finish(job, end, ended)

    def _finish(self, job, end, ended):
        # The copy of the process that a handler has forked answers no job.
        if self._is_child:
            os._exit(0)
        finish_lines(job)
        ended(job, end)
