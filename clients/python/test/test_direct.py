"""What the direct mode promises, without a server."""
import asyncio
import os
import re
import signal
import threading
import types

import pg_pulse
import psycopg
import pytest
from pg_pulse.direct import worker as worker_module
from pg_pulse.direct.end_queue import EndQueue
from pg_pulse.direct.reports import Reports
from pg_pulse.direct.session import Session
from pg_pulse.direct.worker import Direct
from pg_pulse.document import Encoded


def row_of(job_id, token):
    return job_id, token, '{"payload":{},"attempts":1}', None, None


# A worker whose handlers end when the test says so.
def worker_of(started):
    worker = Direct(types.SimpleNamespace(start=lambda job, _: started.append(job)), "", "", 1)
    worker._changed = asyncio.Event()
    return worker


def test_a_second_signal_counts_when_it_comes_five_seconds_after_the_first(monkeypatch):
    worker = Direct(types.SimpleNamespace(), "", "", 60)
    told = []
    worker._loop = types.SimpleNamespace(call_soon_threadsafe=lambda act: told.append(act.__name__))
    for at in (1000, 1000.1, 1004.9, 1005.1):
        monkeypatch.setattr(worker_module.time, "monotonic", lambda at=at: at)
        worker.stop()
    assert told == ["_leave", "_give_up"]


def test_a_claim_of_a_job_in_hand_ends_the_old_claim():
    started = []
    worker = worker_of(started)
    for token in ("1", "2"):
        worker._start(row_of("7", token))
    old, new = started
    assert (old.cancelled.reason, new.cancelled) == ("lost", None)
    assert worker._jobs == {"7": new}


def test_after_a_lost_answer_only_claims_that_the_worker_has_not_known_are_started():
    worker = worker_of([])
    for job_id in ("1", "2"):
        worker._start(row_of(job_id, "10"))

    async def lost(*_):
        raise psycopg.OperationalError("the connection is lost")

    async def held(*_):
        worker._forget(worker._jobs["1"])  # its end is answered meanwhile
        return [row_of("1", "10"), row_of("2", "11"), row_of("3", "12")]
    worker._claims = types.SimpleNamespace(query=lost, ask=held)
    rows = asyncio.run(worker._claimed("1", 3, ["act"]))
    assert [row[:2] for row in rows] == [("2", "11"), ("3", "12")]


def test_a_beat_revokes_the_claim_that_the_beat_has_named_and_no_later_one():
    started = []
    worker = worker_of(started)
    worker._start(row_of("7", "1"))

    async def beat(*_):
        worker._start(row_of("7", "2"))
        return [("alive", ["7"], [])]
    worker._beats = types.SimpleNamespace(ask=beat)
    asyncio.run(worker._beat())
    assert [job.is_over for job in started] == [True, False]
    assert worker._jobs == {"7": started[1]}


class Refusing:
    """A server that refuses with these codes, and then takes what comes."""
    description = True

    def __init__(self, *codes):
        self.codes, self.asked, self.sessions, self.closed = list(codes), [], 0, True

    async def open(self):
        self.sessions, self.closed = self.sessions + 1, False
        return self

    async def close(self):
        self.closed = True

    async def execute(self, text, _):
        self.asked.append(re.search(r"pulse\.(\w+)", text)[1])
        if self.codes:
            raise psycopg.errors.lookup(self.codes.pop(0))("refused")
        return self

    async def fetchall(self):
        return [("accepted",)]


def asked_of(server, monkeypatch, *, leaves=False, end={"result": 1}):
    """What a worker asks to report an end."""
    session, worker, forgotten = Session("", None), worker_of([]), []
    session._open, worker._beats = server.open, session
    if leaves:
        session.ask_once()
    real_sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _: real_sleep(0))

    async def main():
        ends = EndQueue(worker._insist, forgotten.append)
        job = types.SimpleNamespace(id="7", token="1")
        ends.add(job, end)
        await ends._sender
        assert forgotten == [job]
    asyncio.run(main())
    return server.asked


@pytest.mark.parametrize("code", ["25006", "40001", "40P01", "53100", "53200", "55P03", "57014",
                                  "57P01", "57P03", "58030", "08006"])
def test_an_end_that_the_server_refuses_for_now_is_asked_again(code, monkeypatch):
    server = Refusing(code, code)
    assert asked_of(server, monkeypatch) == ["complete_many"] * 3
    # A server that is gone, and a standby, are asked in a new session.
    assert server.sessions == (3 if code.startswith(("08", "57P", "25")) else 1)


@pytest.mark.parametrize("code", ["22023", "P0001"])
def test_an_end_whose_data_the_server_refuses_is_a_failure(code, monkeypatch):
    assert asked_of(Refusing(code), monkeypatch) == ["complete_many", "fail_many"]


@pytest.mark.parametrize("code", ["57014", "57P01"])
def test_a_worker_that_leaves_makes_no_failure_of_an_end_that_is_not_taken(code, monkeypatch):
    assert asked_of(Refusing(code), monkeypatch, leaves=True) == ["complete_many"]


def test_large_ends_are_reported_a_few_at_a_time():
    counts = []

    async def ask(_, columns):
        counts.append(columns[0].count('"') // 2)
        return [("accepted",)] * counts[-1]

    async def main():
        large = Encoded("x" * (1 << 20), "the result")
        ends = EndQueue(ask, lambda _: None)
        for job_id in range(6):
            ends.add(types.SimpleNamespace(id=job_id, token="1"), {"result": large})
        await ends._sender
    asyncio.run(main())
    assert counts == [4, 2]


def test_an_end_that_cannot_be_told_is_a_failure(monkeypatch):
    assert asked_of(Refusing(), monkeypatch, end={"snooze": "soon"}) == ["fail_many"]


def test_of_each_job_the_newest_report_goes_next_and_then_the_end():
    said = []

    async def main():
        under_way, may_end = asyncio.Event(), asyncio.Event()

        async def report(job, members):
            said.append((job, members))
            under_way.set()
            await may_end.wait()
        reports = Reports(report, lambda job, end: said.append((job, end)))
        reports.add("first", {"progress": 0})
        await under_way.wait()
        for n in range(1000):
            reports.add("second", {"progress": n})
            reports.add("third", {"progress": n, "message": "copies"})
        reports.add("third", {"checkpoint": 7})
        reports.add("third", {"progress": 1000})
        reports.end("third", "end of third")
        reports.end("first", "end of first")
        reports.end("silent", "end of silent")
        may_end.set()
        await reports._sender
    asyncio.run(main())
    assert said == [
        ("first", {"progress": 0}), ("silent", "end of silent"), ("first", "end of first"),
        ("third", {"progress": 1000, "message": "copies", "checkpoint": 7}),
        ("third", "end of third"), ("second", {"progress": 999})]


def test_a_wait_for_jobs_on_a_server_that_is_gone_without_a_word_ends():
    worker = Direct(types.SimpleNamespace(takes=1, tasks={"act": pg_pulse.task(len)}),
                    "", "", 1)
    limits = {}

    async def ask(text, _, within=None):
        limits[re.search(r"pulse\.(\w+)", text)[1]] = within
        worker._is_stopping |= "wait_for_job" in text
        return [("alive", [], [])] if "heartbeat" in text else []
    worker._claims = types.SimpleNamespace(query=ask)
    worker._beats = types.SimpleNamespace(ask=ask)
    asyncio.run(worker._claim_jobs())
    assert limits == {"claim": 30, "wait_for_job": 50, "heartbeat": 30}


class Away:
    """A server that is away for so many calls, each in words of its own, and comes back."""
    description = closed = True

    def __init__(self, calls):
        self.calls = calls

    async def open(self):
        self.calls -= 1
        if self.calls >= 0:
            raise psycopg.OperationalError(f"refused,\n{self.calls} are left")
        return self

    async def execute(self, *_):
        return self

    async def fetchall(self):
        return [(0,)]


def said_by(monkeypatch):
    said = []
    monkeypatch.setattr(worker_module.output, "say", said.append)
    real_sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _: real_sleep(0))
    return said


def test_a_server_that_is_away_is_said_once_and_so_is_its_return(monkeypatch):
    said, worker, server = said_by(monkeypatch), worker_of([]), Away(3)
    worker._claims, worker._beats = (Session("", None, worker._answered) for _ in "12")
    worker._claims._open = worker._beats._open = server.open
    worker._me = "1"

    async def main():
        for _ in range(2):
            await asyncio.gather(worker._claims.ask("", [], 1), worker._sweep())
            server.calls = 3
    asyncio.run(main())
    lost = "pg_pulse: reconnecting: refused, 2 are left"
    assert said == [lost, "pg_pulse: connected again"] * 2


def test_work_aside_whose_server_is_away_complains_and_no_more(monkeypatch):
    said, worker = said_by(monkeypatch), worker_of([])
    worker._beats = session = Session("", None)
    session._open = Away(1).open
    session.ask_once()

    async def main():
        worker._loop = asyncio.get_running_loop()
        worker._loop.set_exception_handler(lambda _, context: said.append(context["message"]))
        worker._notice(types.SimpleNamespace(sqlstate="PU100"))
        await asyncio.wait(list(worker._asides))
    asyncio.run(main())
    assert said == ["pg_pulse: refused,\n0 are left"]


def test_a_call_that_is_asked_again_says_why_once(monkeypatch):
    said, server = said_by(monkeypatch), Refusing("53100", "53100")
    worker = worker_of([])
    session = worker._beats = Session("", None, worker._answered)
    session._open, worker._me = server.open, "1"
    asyncio.run(worker._insist("SELECT pulse.complete_many()", []))
    assert said == ["pg_pulse: refused"]


def test_a_program_that_is_refused_may_try_again_for_ever(monkeypatch):
    hooks = []
    monkeypatch.setattr(os, "register_at_fork", lambda **hook: hooks.append(hook))

    def left_behind():
        with pytest.raises(RuntimeError, match="hint: --connection"):
            pg_pulse.work([pg_pulse.task(len)], connection="host=/nowhere")
        return (threading.active_count(), len(os.listdir("/proc/self/fd")), len(hooks),
                signal.getsignal(signal.SIGTERM))
    assert left_behind() == left_behind()
    assert left_behind()[3] is signal.SIG_DFL
