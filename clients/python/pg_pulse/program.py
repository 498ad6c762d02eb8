"""The program mode: lines of JSON to and from the worker that has started this program
(docs/programs.md). One socket, any number of jobs at once.

Always holds, under _lock: the handler of a job in _running runs; each job gets one answer, and no
line after the answer. Whoever holds _sending writes the lines of all. Lines of logs and progress go
at once: the handler may end the program next. Answers go together, from a thread of their own."""
import json
import os
import socket
import threading

from . import ends
from .document import NotRead, line_value, member_text
from .job import Job, unread

_PROTOCOL = 1
_READ_BYTES = 64 * 1024


class Program:
    def __init__(self, fd, handlers, name):
        os.set_inheritable(fd, False)
        self._socket = socket.socket(fileno=fd)
        self._handlers = handlers
        tasks = {task.identifier: {} if task.takes is None else {"takes": task.takes}
                 for task in handlers.tasks.values()}
        self._hello = {"protocol": _PROTOCOL, "takes": handlers.takes, "tasks": tasks}
        if name is not None:
            self._hello["name"] = name
        self._running, self._lines, self._is_ending = {}, [], False
        self._is_child = False
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._has_answers = threading.Event()

    def serve(self):
        """Speaks first, then runs jobs until the worker sends no more and all jobs have ended."""
        self._socket.sendall(json.dumps({"hello": self._hello}).encode() + b"\n")
        sender = threading.Thread(target=self._send_answers, name="pg_pulse answers", daemon=True)
        sender.start()
        try:
            for line in self._socket.makefile("rb", _READ_BYTES):
                self._handle(line)
        except OSError:
            for job in list(self._running.values()):
                job.cancel("lost", 0)
            raise
        self._is_ending = True
        self._has_answers.set()
        sender.join()
        self._send()
        self._socket.shutdown(socket.SHUT_WR)

    def in_child(self):
        """In a process that a handler has forked, which has no part in the socket."""
        self._is_child = True
        os.close(self._socket.detach())

    def _handle(self, line):
        text = line.decode()
        try:
            message = line_value(text)
        except NotRead as error:
            key, task = (json.loads(member_text(text, name)) for name in ("id", "task"))
            message = unread(error, key, id=key, identifier=task)
        if "cancel" not in message:
            job = self._running[message["id"]] = Job(self, message, text)
            self._handlers.start(job, self._ended)
        elif job := self._running.get(message["cancel"]):
            # The claim is over because the handler's own transaction has completed the job, and the
            # handler may go on.
            if message["reason"] == "lost" and job.is_completed:
                self._answer(job, {"done": True})
            else:
                job.cancel(message["reason"], message["grace_ms"] / 1000)

    def _ended(self, job, end):
        self._answer(job, end, has_ended=True)

    # A job leaves with its answer: where none runs and no line comes, serve() closes the socket.
    def _answer(self, job, end, has_ended=False):
        line, _ = ends.line_of_end(job, end)
        with self._lock:
            if not job.is_over:
                self._lines.append(line)
            job.is_over = True
            if has_ended:
                del self._running[job.key]
        if not self._has_answers.is_set():
            self._has_answers.set()

    def _send_answers(self):
        while self._running or not self._is_ending:
            self._has_answers.wait()
            self._has_answers.clear()
            self._send()

    def _send(self):
        with self._sending:
            with self._lock:
                lines, self._lines = self._lines, []
            self._socket.sendall(b"".join(lines))

    def tell(self, job, members):
        """Writes what a job says of itself."""
        if self._is_child:
            return
        line = ends.line(job, members, "the checkpoint")
        with self._lock:
            if job.is_over:
                return
            self._lines.append(line)
        self._send()
