"""Runs handlers: async ones on an event loop in a thread of its own, others in threads.

Always holds: `ended` is called once for each job, with the end of its attempt, in any thread."""
import asyncio
import collections
import contextlib
import os
import queue
import threading

from . import ends
from .output import current, finish_lines


class _Threads:
    """At most so many threads, which live as long as the process.

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

    def _add(self):
        self._left -= 1
        threading.Thread(target=self._run, name="pg_pulse", daemon=True).start()

    def _run(self):
        while True:
            self._idle.append(None)
            self._turn.get()
            act, *arguments = self._work.get()
            self._idle.pop()
            if not self._idle and self._left:
                self._add()
            self._turn.put(None)
            act(*arguments)


class Handlers:
    def __init__(self, tasks, takes):
        self.tasks, self.takes, self._loop = tasks, takes, asyncio.new_event_loop()
        threading.Thread(target=self._run_loop, name="pg_pulse loop", daemon=True).start()
        self._threads, self._coming = _Threads(takes), collections.deque()
        self._is_child = False
        os.register_at_fork(after_in_child=self._in_child)

    def _run_loop(self):
        while True:
            # An exit within a task of asyncio, as wait_for() makes one, ends the task, and leaves
            # the loop, too.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()

    def _in_child(self):
        current.set(None)
        self._is_child = True

    def start(self, job, ended):
        task = self.tasks[job.identifier]
        if not task.is_async:
            self._threads.start(self._run, task, job, ended)
            return
        self._coming.append((task, job, ended))
        if len(self._coming) == 1:
            self._loop.call_soon_threadsafe(self._start_coming)

    def _run(self, task, job, ended):
        current.set(job)
        try:
            end = ends.of_value(job, task.handle(job))
        except BaseException as raised:
            end = ends.of_raised(raised)
        self._finish(job, end, ended)

    def _start_coming(self):
        while self._coming:
            self._start_async(*self._coming.popleft())

    def _start_async(self, task, job, ended):
        running = self._loop.create_task(self._run_async(task, job, ended))
        job.end_handler = lambda: self._loop.call_soon_threadsafe(running.cancel)
        if job.cancelled:
            job.end_handler()

    async def _run_async(self, task, job, ended):
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
