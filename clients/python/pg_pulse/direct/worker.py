"""The direct mode: a worker within this process, for hosts without pulse-worker. The class keeps
the rules of docs/worker-protocol.md in the main thread, where no handler runs that could hold up a
beat.

Always holds, in that thread alone: _jobs has each job that this worker has claimed and not
reported, by id; a beat names exactly these jobs; each end goes to the server with the token of the
claim until an answer comes. _running has each job whose handler has not ended; a handler that
outlives the end of its job keeps its place. The session _claims waits and claims; the session
_beats is attached, and asks all else."""
import asyncio
import json
import os
import time
from contextlib import suppress

import psycopg

from .. import ends, output
from ..calls import VERSIONS, array_literal, checked_version
from ..document import encode
from ..errors import sqlstate
from ..generated.errors import ClaimLost, WorkerUnknown
from ..job import claimed
from .end_queue import EndQueue
from .reports import Reports
from .session import Session, is_cut, is_passing

# Seconds that a claim or a beat waits for an answer at most.
_ANSWER = 30
_WAIT = "20 s"
# Beyond the wait: a server that is gone without a word answers never.
_WAIT_ANSWER = 20 + _ANSWER
# Until a task without a free place is asked for again, and after a refusal.
_POLL_WAIT, _POLL = "500 ms", 0.5
_CANCEL = 0.05
# npm, terminals and supervisors may send a signal twice.
_AGAIN = 5
_NEVER_ENDED = {"error": "the handler has not ended in time"}
_CLAIM = """SELECT c.id::text, c.token::text, row_to_json(c)::text,
    extract(epoch FROM c.timeout)::float8, extract(epoch FROM c.stall_timeout)::float8
    FROM pulse."""


class Direct:
    def __init__(self, handlers, connection, name, grace):
        self._handlers, self._connection = handlers, connection
        self._name, self._grace = name, grace
        self._loop = self._me = self._complaint = None
        self._jobs, self._running = {}, set()
        self._is_claiming, self._is_stopping, self._is_over = True, False, False
        self._signalled_at = None
        self._asides, self._stale, self._is_away = set(), set(), False

    def serve(self):
        """Runs jobs until stop(), or until an operator asks the worker to leave. False where
        handlers have not ended in time."""
        return asyncio.run(self._serve())

    def stop(self):
        """Claims no more; after the grace of the handlers the worker leaves, and at once where the
        call is repeated five seconds after the first call or later. In any thread."""
        self._is_stopping = True
        if self._signalled_at is None:
            self._signalled_at = time.monotonic()
            act = self._leave
        elif time.monotonic() - self._signalled_at > _AGAIN:
            act = self._give_up
        else:
            return
        if self._loop:
            self._loop.call_soon_threadsafe(act)

    async def _serve(self):
        self._loop, self._changed = asyncio.get_running_loop(), asyncio.Event()
        self._claims = Session(self._connection, self._notice, self._answered)
        self._beats = Session(self._connection, self._notice, self._answered, self._attach)
        self._ends = EndQueue(self._insist, self._forget)
        self._reports = Reports(self._report, self._ends.add)
        try:
            await self._check()
            await self._run_jobs()
        finally:
            await self._claims.end()
            await self._beats.end()
        return not self._running

    async def _check(self):
        try:
            await self._beats.check()
            checked_version(await self._beats.query(VERSIONS))
        except psycopg.OperationalError as error:
            raise RuntimeError(f"{error}\nhint: --connection, or PGHOST, PGDATABASE, PGUSER, "
                               "PGPASSWORD … say where to connect and as whom") from error

    async def _run_jobs(self):
        await self._register()
        self._aside(self._repeat(self._beat, lambda: self._beat_seconds))
        self._aside(self._repeat(self._sweep, lambda: self._sweep_seconds))
        if self._is_stopping:
            self._leave()
        await self._claim_jobs()
        self._is_claiming = False
        while self._jobs and not self._is_over:
            await self._change(_POLL)
        self._is_over = True
        with suppress(Exception):
            await self._beats.query("SELECT FROM pulse.deregister_worker(%s::text::bigint)",
                                    [self._me], _ANSWER)

    # With `finish` jobs may take their time.
    def _leave(self, finish=False):
        self._is_stopping = True
        self._aside(self._end_wait())
        self._changed.set()
        if not finish:
            for job in list(self._jobs.values()):
                self._tell_to_end(job, "silence", "shutdown")
            self._loop.call_later(self._grace, self._give_up)

    # No answer that has not come by now is waited for.
    def _give_up(self):
        self._is_over = True
        self._claims.cut()
        self._beats.ask_once()
        self._changed.set()

    # Again and again, because a wait may be on its way to the server.
    async def _end_wait(self):
        while self._is_claiming:
            with suppress(Exception):
                await self._ask("SELECT pg_cancel_backend(%s)", [self._claims.pid])
            await asyncio.sleep(_CANCEL)

    def _ask(self, text, values):
        return self._beats.ask(text, values, _ANSWER)

    # What must not be lost is asked again, too, where the server refuses for now.
    def _insist(self, text, values):
        return self._beats.ask(text, values, _ANSWER, is_passing)

    def _aside(self, work):
        task = self._loop.create_task(self._complain_of(work))
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)

    async def _complain_of(self, work):
        try:
            await work
        except Exception as error:
            self._complain(error)

    async def _change(self, seconds):
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    async def _repeat(self, act, interval):
        while not self._is_over:
            await asyncio.sleep(interval())
            await self._complain_of(act())

    # Once, however often the server refuses in the same words. That the server is away is said.
    def _complain(self, error):
        if not (self._is_away and is_cut(error)) and str(error) != self._complaint:
            self._complaint = str(error)
            output.say(f"pg_pulse: {error}")

    # An outage is said once, and its end once, whichever session finds out; the connection of the
    # other one is gone, too.
    def _answered(self, session, error=None):
        if self._me is None or self._is_over:
            return
        if error is None:
            self._stale.discard(session)
            if self._is_away:
                self._is_away = False
                output.say("pg_pulse: connected again")
        elif not is_cut(error):
            self._complain(error)
        elif session not in self._stale:
            self._is_away, self._stale = True, {self._claims, self._beats}
            output.say(f"pg_pulse: reconnecting: {' '.join(str(error).split())}")

    def _notice(self, notice):
        if notice.sqlstate == "PU100":
            self._aside(self._sweep())

    def in_child(self):
        self._claims.in_child()
        self._beats.in_child()

    # --- the worker ---

    async def _register(self):
        info = {"pid": os.getpid(), "slots": self._handlers.takes,
                "kill_grace_ms": int(self._grace * 1000)}
        [(self._me, self._beat_seconds, sweep)] = await self._ask(
            """SELECT id::text, extract(epoch FROM heartbeat_interval)::float8,
                extract(epoch FROM current_setting('pulse.sweep_interval')::interval)::float8
                FROM pulse.register_worker(%s::text, %s::text::text[], %s::json)""",
            [self._name, array_literal(self._handlers.tasks), json.dumps(info)])
        # A database that leaves sweeps to others has a negative interval.
        self._sweep_seconds = sweep if sweep > 0 else float("inf")
        await self._attach(self._ask)

    # In each session that beats. A worker that is lost by then finds out by its next beat.
    async def _attach(self, ask):
        if self._me is not None and not self._is_over:
            try:
                await ask("SELECT FROM pulse.attach_worker(%s::text::bigint)", [self._me])
            except Exception as error:
                if sqlstate(error)[0] != "PU002":
                    raise

    async def _beat(self):
        me, jobs = self._me, dict(self._jobs)
        [(status, revoked, cancelled)] = await self._ask(
            """SELECT status, revoked::text[], cancelled::text[]
                FROM pulse.heartbeat(%s::text::bigint, %s::text::bigint[])""",
            [me, array_literal(jobs)])
        if status == "lost":
            await self._renew(me)
            return
        # Of the claims that the beat has named: a job may be claimed anew meanwhile.
        for job_id in revoked:
            self._revoke(jobs.get(job_id))
        for job_id in cancelled:
            if (job := jobs.get(job_id)) and not job.cancelled:
                job.cancel("cancelled", self._grace)
        if status != "alive" and not self._is_stopping:
            self._leave(finish=status != "stopping")

    # All claims of this worker are over: a new worker takes part.
    async def _renew(self, me):
        if self._me == me:
            for job in list(self._jobs.values()):
                self._revoke(job)
            await self._register()
            self._changed.set()

    async def _sweep(self):
        found = 1
        while found and not self._is_over:
            [(found,)] = await self._ask(
                """SELECT workers_lost + jobs_requeued + jobs_failed + jobs_quarantined
                    + jobs_timed_out + jobs_stalled FROM pulse.sweep()""", None)

    # --- jobs ---

    async def _claim_jobs(self):
        while not self._is_stopping:
            me = self._me
            places = {name: self._places(task) for name, task in self._handlers.tasks.items()}
            open_tasks = [name for name, free in places.items() if free > 0]
            if not open_tasks:
                await self._change(_ANSWER)
                continue
            # So few that no task gets more than it takes, whatever comes. A wait is for the tasks
            # of the last claim, so one claim names all.
            most = min(places[name] for name in open_tasks)
            try:
                rows = await self._claimed(me, most, open_tasks)
            except Exception as error:
                await self._refused(error, me)
                continue
            for row in rows:
                self._start(row)
            if not rows and not self._is_stopping:
                longest = _POLL_WAIT if len(open_tasks) < len(places) else _WAIT
                with suppress(Exception):
                    await self._claims.query("CALL pulse.wait_for_job(%s::text::bigint, "
                                             "%s::text::interval)", [me, longest],
                                             _WAIT_ANSWER)
                with suppress(Exception):
                    await self._beat()

    # Of the whole worker, or of the task where that is less.
    def _places(self, task):
        free = self._handlers.takes - max(len(self._jobs), len(self._running))
        if task.takes is None:
            return free
        running = sum(job.identifier == task.identifier for job in self._running)
        return min(free, task.takes - running)

    async def _claimed(self, me, count, names):
        try:
            return await self._claims.query(
                f"{_CLAIM}claim(%s::text::bigint, %s::int, %s::text::text[], "
                "start_jobs => %s::int) AS c", [me, count, array_literal(names), count], _ANSWER)
        except Exception as error:
            if not is_cut(error):
                raise
        # The answer may be lost, and the jobs claimed. A job may end before the next answer comes.
        known = {(job.id, job.token) for job in self._jobs.values()}
        held = await self._claims.ask(f"{_CLAIM}held(%s::text::bigint) AS c", [me], _ANSWER,
                                      is_passing)
        return [row for row in held if row[:2] not in known]

    async def _refused(self, error, me):
        if isinstance(error, WorkerUnknown):
            with suppress(Exception):
                await self._renew(me)
        elif sqlstate(error)[0] != "57014":
            self._complain(error)
        await self._change(_POLL)

    def _start(self, row):
        *document, timeout, stall = row
        job = claimed(self, *document)
        job.late, job.stall_seconds = None, stall
        job.limit = self._limit(job, timeout, "timeout")
        job.stall = self._limit(job, stall, "stall")
        # Requeued, and claimed anew before a beat has told of the end of the old claim.
        self._revoke(self._jobs.get(job.id))
        self._jobs[job.id] = job
        self._running.add(job)
        self._handlers.start(job, self._finished)

    # In the thread of the handler. The same is too large in both modes.
    def _finished(self, job, end):
        _, end = ends.line_of_end(job, end)
        self._loop.call_soon_threadsafe(self._handler_ended, job, end)

    def _handler_ended(self, job, end):
        self._running.discard(job)
        self._ended(job, end)
        self._changed.set()

    def _limit(self, job, seconds, reason):
        return None if seconds is None else self._loop.call_later(
            seconds, self._tell_to_end, job, reason, reason)

    # An end from now on is the end that `late` says. A handler that does not end is left alone.
    def _tell_to_end(self, job, late, reason):
        if not job.is_over and not job.late:
            job.late = late
            job.cancel(reason, self._grace)
            self._loop.call_later(self._grace, self._ended, job, _NEVER_ENDED)

    def _ended(self, job, end):
        if job.is_over:
            return
        job.is_over = True
        for timer in (job.limit, job.stall):
            if timer:
                timer.cancel()
        if job.late and "done" not in end:
            end = {"late": job.late, "error": end.get("error", "it ended too late")}
        self._reports.end(job, end)

    def _revoke(self, job):
        if job:
            job.cancel("lost", 0)
            job.is_over = True
            self._forget(job)

    def _forget(self, job):
        if self._jobs.get(job.id) is job:
            del self._jobs[job.id]
        self._changed.set()

    def tell(self, job, members):
        """Carries what a job says of itself."""
        if "log" not in members:
            ends.line(job, members, "the checkpoint")
            self._loop.call_soon_threadsafe(self._told, job, members)
        elif not job.is_over:
            output.say(members["log"], f"{job.identifier} {job.id}: ")

    def _told(self, job, members):
        if not job.is_over:
            if job.stall:
                job.stall.cancel()
                job.stall = self._limit(job, job.stall_seconds, "stall")
            self._reports.add(job, members)

    async def _report(self, job, members):
        checkpoint = encode(members["checkpoint"], "") if "checkpoint" in members else None
        try:
            await self._insist(
                """SELECT FROM pulse.progress(%s::text::bigint, %s::text::bigint, %s::text,
                    %s::float8, %s::json, %s::text)""",
                [job.id, job.token, members.get("message"), members.get("progress"), checkpoint,
                 members.get("stage")])
        except ClaimLost:
            self._revoke(job)
        except Exception as error:
            self._complain(error)
