"""What the library promises without a server: its keys, its errors, its JSON."""
import asyncio
import contextlib
import contextvars
import datetime
import decimal
import hashlib
import importlib
import io
import json
import logging
import os
import pathlib
import queue
import re
import shutil
import socket
import subprocess
import sys
import threading
import types
import typing
from unittest import mock

import pg_pulse
import pytest
from pg_pulse import calls, document, ends, errors, handlers, output, program

ROOT = pathlib.Path(__file__).parents[3]
VECTORS = json.loads((ROOT / "clients/vectors/unique_keys.json").read_text())
MAX_BYTES = 256


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"].replace(" ", "_"))
def test_unique_key(vector):
    value, by = vector["payload"], vector.get("by")
    if vector.get("refused"):
        with pytest.raises(TypeError):
            pg_pulse.unique_key(value, by)
        return
    canonical = vector["canonical"].encode()
    is_long = len(canonical) > MAX_BYTES
    digest = f"sha256:{hashlib.sha256(canonical).hexdigest()}"
    assert pg_pulse.unique_key(value, by) == (digest if is_long else vector["canonical"])


@pytest.mark.parametrize("value", [{"t": "\ud83d"}, {"\ude42": 1}])
def test_a_unique_key_has_whole_characters(value):
    with pytest.raises(pg_pulse.NotJson, match="half of a surrogate pair"):
        pg_pulse.unique_key(value)


def test_unique_key_of_values_that_json_writes_as_texts():
    value = {"at": datetime.date(1970, 1, 1), "sum": decimal.Decimal("1.10")}
    assert pg_pulse.unique_key(value) == '{"at":"1970-01-01","sum":"1.10"}'


class DriverError(Exception):
    def __init__(self, code, message, hint=None):
        super().__init__(message)
        self.sqlstate = code
        self.diag = type("Diag", (), {"message_primary": message, "message_hint": hint})


def test_an_error_of_the_server_becomes_one_with_its_code_and_a_way_out():
    lost = errors.translate(DriverError("PU001", "the claim is lost", "Stop."))
    assert isinstance(lost, pg_pulse.ClaimLost) and isinstance(lost, pg_pulse.PulseError)
    assert (str(lost), lost.code, lost.hint) == ("the claim is lost\nHINT: Stop.", "PU001", "Stop.")
    assert errors.translate(DriverError("23505", "duplicate key")) is None
    assert errors.translate(ValueError()) is None
    codes = re.findall(r"^\| `(PU0\d\d)` ", (ROOT / "docs/errors.md").read_text(), re.M)
    for code in codes:
        assert errors.translate(DriverError(code, code)), f"{code} has a class"


def test_a_member_of_a_document_keeps_its_digits():
    text = ('{"id":"1","payload" : {"n": 9007199254740993.10, "payload": 1} ,'
            '"job":{"checkpoint":[1]}}')
    assert document.member_text(text, "payload") == '{"n": 9007199254740993.10, "payload": 1}'
    assert document.member_text(document.member_text(text, "job"), "checkpoint") == "[1]"
    assert document.member_text(text, "checkpoint") is None
    assert document.member_text("{ }", "checkpoint") is None


def test_json_text_is_a_whole_document():
    with pytest.raises(ValueError):
        pg_pulse.JsonText("{")
    assert document.encode(pg_pulse.JsonText('{"n":\n1.10}'), "it") == '{"n": 1.10}'
    with pytest.raises(pg_pulse.NotJson, match="no part of another"):
        document.encode({"part": pg_pulse.JsonText("1")}, "it")
    with pytest.raises(pg_pulse.NotJson):  # an object that answers to any name is none
        document.encode(mock.Mock(), "it")


def test_half_of_a_surrogate_pair_is_escaped():
    assert document.encode({"a": "ü"}, "it") == '{"a":"ü"}'
    assert document.encode({"a": "ü\ud800"}, "it") == '{"a":"\\u00fc\\ud800"}'


def test_two_copies_of_the_library_know_the_words_of_each_other(tmp_path, monkeypatch):
    shutil.copytree(pathlib.Path(pg_pulse.__file__).parent, tmp_path / "vendored_pulse")
    monkeypatch.syspath_prepend(tmp_path)
    other = importlib.import_module("vendored_pulse")
    assert other.Failure is not pg_pulse.Failure
    job = type("Ended", (), {"identifier": "act", "is_completed": False, "unanswered": ()})
    assert ends.of_raised(other.Failure("no", retry=False))["retry"] is False
    result = ends.of_value(job, other.JsonText("1.10"))["result"]
    assert document.encode(result, "it") == "1.10"
    assert {error.__name__ for error in other.PulseError.__subclasses__()} == {
        error.__name__ for error in pg_pulse.PulseError.__subclasses__()}


def test_times_that_python_does_not_have_stay_texts():
    assert calls._time("2026-11-28T12:00:00.5+00:00").microsecond == 500_000
    assert calls._time(None) is None
    assert [calls._time(text) for text in ("infinity", "10000-01-01T00:00:00+00:00")] == [
        "infinity", "10000-01-01T00:00:00+00:00"]


def test_the_versions_agree():
    project = (ROOT / "clients/python/pyproject.toml").read_text()
    assert re.search(r'^version = "(.*)"', project, re.M)[1] == errors.VERSION


@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_an_end_whose_value_raises_whatever_is_a_failure_with_the_reason(error):
    class Broken:
        def __getattr__(self, name):
            raise error("no value")

    job = types.SimpleNamespace(identifier="act", is_completed=False, unanswered=())
    for end in (ends.of_raised(pg_pulse.Failure("f", payload=Broken())),
                ends.of_value(job, pg_pulse.Job.snooze(None, 1, checkpoint=Broken())),
                ends.of_value(job, Broken())):
        assert end.keys() == {"error"}
        assert end["error"].endswith(f"{error.__name__}: no value")


class Spoken:
    """A job that keeps the lines of its log."""
    is_over, unfinished_lines = False, None

    def __init__(self):
        self.logs = []

    def log(self, text, level):
        self.logs.append(text)


@contextlib.contextmanager
def speaking():
    job = Spoken()
    before, undo = output.current.set(job), output.route()
    try:
        yield job
        output.finish_lines(job)
    finally:
        undo()
        output.current.reset(before)


def test_nothing_is_lost_that_threads_of_a_handler_print():
    def say(number):
        for _ in range(500):
            print(number, end="")

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    with speaking() as spoken:
        threads = [threading.Thread(target=contextvars.copy_context().run, args=(say, n))
                   for n in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    sys.setswitchinterval(switch)
    assert sorted("".join(spoken.logs)) == sorted("0123" * 500)


def test_a_line_without_an_end_is_not_kept_whole():
    with speaking() as spoken:
        for _ in range(20_000):
            print(".", end="")
        assert len("".join(spoken.logs)) > 15_000
    assert len("".join(spoken.logs)) == 20_000


def test_prints_come_by_lines_and_records_whole():
    logger = logging.getLogger("records")
    with speaking() as spoken:
        logger.addHandler(handler := logging.StreamHandler())
        print("two\n\nlines\nand", end="")
        try:
            raise ValueError("it broke")
        except ValueError:
            logger.exception("one of the letters")
        logger.removeHandler(handler)
    two, lines, record, rest = spoken.logs
    assert (two, lines, rest) == ("two", "lines", "and")
    assert re.fullmatch(r"one of the letters\nTraceback .*\n  File .*\nValueError: it broke",
                        record, re.S)


def test_work_that_waits_runs_beside_other_work():
    threads, barrier, done = handlers._Threads(3), threading.Barrier(3), queue.SimpleQueue()
    for _ in ("new threads", "threads that are idle"):
        for _ in range(3):
            threads.start(lambda: done.put(barrier.wait()))
        assert sorted(done.get(timeout=30) for _ in range(3)) == [0, 1, 2]


def test_a_task_of_asyncio_that_exits_ends_its_handler_and_no_other():
    async def leave():
        sys.exit("bye")

    @pg_pulse.task
    async def act(payload):
        await (asyncio.wait_for(leave(), 60) if payload == "exit" else asyncio.sleep(0))

    running, answers = handlers.Handlers({"act": act}, 1), queue.SimpleQueue()
    for payload_of, said in (("exit", "SystemExit: bye"), ("rest", None)):
        document = {"id": "1", "identifier": "act"}
        job = pg_pulse.Job(Port(), {"id": "1", "payload": payload_of, "job": document}, "")
        running.start(job, lambda _, end: answers.put(end))
        error = answers.get(timeout=30).get("error")
        assert error is None if said is None else error.endswith(said)


def test_threads_and_loop_end_when_their_handlers_have_ended():
    gate, answers, left = threading.Event(), queue.SimpleQueue(), asyncio.Event()

    async def stay():
        await left.wait()

    @pg_pulse.task
    async def act():
        asyncio.get_running_loop().create_task(stay())
        while not gate.is_set():
            await asyncio.sleep(0)
        return await asyncio.to_thread(int, 7)

    before = set(threading.enumerate())
    running = handlers.Handlers({"act": act, "wait": pg_pulse.task("wait")(gate.wait)}, 2)
    assert set(threading.enumerate()) == before
    for name in ("act", "wait", "wait"):
        document = {"id": "1", "identifier": name}
        job = pg_pulse.Job(Port(), {"id": "1", "payload": None, "job": document}, "")
        running.start(job, lambda _, end: answers.put(end["result"].pg_pulse_json))
    begun = set(threading.enumerate()) - before
    running.end()
    gate.set()
    assert sorted(answers.get(timeout=30) for _ in range(3)) == ["7", "true", "true"]
    for each in begun:
        each.join(30)
    assert not any(each.is_alive() for each in begun)


class Port:
    def __init__(self):
        self.told = []

    def tell(self, _, members):
        self.told.append(members)


def test_what_a_job_says_of_itself():
    job = pg_pulse.Job(Port(), {"id": "1", "payload": {}, "job": {"id": "1"}}, "{}")
    job.progress(decimal.Decimal("0.5"), message="half \0\ud800", stage=2)
    job.progress(None, message="x" * 5000)
    job.log("two\nlines")
    job.log("é" * 5000)
    assert job._port.told == [
        {"progress": 0.5, "message": "half ?", "stage": "2"}, {"message": "x" * 1024},
        {"log": "two\nlines", "level": "info"},
        {"log": f"{'é' * 998}\n…\n{'é' * 998}", "level": "info"}]
    for wrong in (50, -1, float("nan")):
        with pytest.raises(ValueError, match="a fraction from 0 to 1, and not"):
            job.progress(wrong)


def test_ids_of_parents_are_texts_as_all_ids():
    for parents, told in ((None, None), ([{"id": 7, "result": 1}], [{"id": "7", "result": 1}])):
        job = pg_pulse.Job(None, {"id": "9", "payload": 1, "job": {"parents": parents}}, "")
        assert job.parents == told


def test_times_are_seconds_or_a_timedelta():
    minute = datetime.timedelta(minutes=1)
    assert pg_pulse.Failure("later", retry_in=minute).pg_pulse_end == {"retry_in": 60}
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="no number of seconds from 0 to 1000000000"):
            pg_pulse.Failure("later", retry_in=wrong)
        with pytest.raises(ValueError, match="the delay is"):
            pg_pulse.Job.snooze(None, wrong)


@pytest.mark.parametrize("grace", [-1, float("nan"), float("inf")])
def test_what_is_no_time_of_grace_is_refused_at_once(grace):
    with pytest.raises(ValueError, match="grace is .*, and no number of seconds"):
        pg_pulse.work([pg_pulse.task(lambda: None)], grace=grace)


@pytest.mark.parametrize("takes", [0, -1, 1.5, "7", True, 10_001])
def test_what_is_no_number_of_jobs_is_refused_at_once(takes):
    with pytest.raises(ValueError, match="takes is .*, and no number of jobs from 1 to 10,000"):
        pg_pulse.task("mail", takes=takes)(lambda: None)
    with pytest.raises(ValueError, match="takes is"):
        pg_pulse.work([pg_pulse.task(lambda: None)], takes=takes)


def test_checkers_of_types_know_the_library():
    public = {name for name, each in vars(pg_pulse).items()
              if not name.startswith("_") and not isinstance(each, types.ModuleType)}
    assert set(pg_pulse.__all__) == public
    for each in (pg_pulse.work, pg_pulse.task, pg_pulse.check_version, pg_pulse.unique_key,
                 pg_pulse.Job.progress, pg_pulse.Job.complete, pg_pulse.Failure.__init__):
        assert "return" in typing.get_type_hints(each) or typing.get_overloads(each), each


def test_a_line_is_one_write_that_no_other_thread_divides(monkeypatch):
    writes = []
    stream = types.SimpleNamespace(write=writes.append, flush=lambda: None)
    monkeypatch.setattr(output, "_plain_stdout", stream)
    output.say("ship 7: sent")
    assert writes == ["ship 7: sent\n"]


def test_a_log_that_is_gone_ends_nothing(monkeypatch):
    closed = io.StringIO()
    closed.close()
    broken = types.SimpleNamespace(write=lambda text: os.write(-1, text.encode()))
    for stream in (closed, broken):
        monkeypatch.setattr(output, "_plain_stdout", stream)
        output.say("ship 7: sent")


def test_a_program_may_have_no_standard_streams(tmp_path):
    code = """if True:
        import types
        from pg_pulse import output
        output.say("of the worker")
        undo = output.route()
        print("outside of jobs", flush=True)
        told = []
        output.current.set(types.SimpleNamespace(
            is_over=False, unfinished_lines=None, log=lambda *line: told.append(line)))
        print("of a job", flush=True)
        undo()
        assert told == [("of a job", "info")]
    """
    command = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", sys.executable, "-c", code]
    # A built tree has a library of the name pg_pulse, which Python would find first.
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0


def test_a_job_leaves_the_program_with_its_answer(monkeypatch):
    theirs, ours = socket.socketpair()
    of_nobody = types.SimpleNamespace(tasks={}, takes=1)
    served = program.Program(theirs.detach(), of_nobody, None)
    job = types.SimpleNamespace(key="17", is_over=False)
    served._running[job.key] = job
    in_hand = []
    monkeypatch.setattr(ends, "line_of_end", lambda each, end: (
        in_hand.append(each.key in served._running) or b"answer\n", end))
    served._ended(job, {"result": None})
    assert in_hand == [True]
    assert (served._running, served._lines) == ({}, [b"answer\n"])
    ours.close()
