"""What scenarios use: workers, jobs, and what the tables say of both."""
import json
import os
import signal
import time

from .program import Program
from .proxy import Proxy
from .sql import Gone, Psql, Refused, quoted
from .wait import wait_until

SCENARIOS = []
MAX_STARTS = 12  # of one program in one scenario


class Failed(Exception):
    """The worker broke a rule."""


class Skipped(Exception):
    """The scenario cannot be played here."""


def scenario(rule, title, server=False):
    """Registers a function as a scenario of a rule. `server`: needs the kit's own server."""
    def register(play):
        SCENARIOS.append({"rule": rule, "title": title, "server": server, "play": play})
        return play
    return register


class Kit:
    def __init__(self, place, command, setup, patience):
        self.place, self.command, self.patience = place, command, patience
        self.psql = place.begin(setup)
        self.file = os.path.join(place.folder, "told")
        self.output = os.path.join(place.folder, "output")
        self.programs, self.proxies, self.count = [], [], 0
        self.clear()

    # Workers

    def worker(self, proxy=None, registered=True):
        """Starts COMMAND. Returns once it is registered; its number is in id."""
        environment = (proxy or self.place).environment if proxy else self.place.worker_environment
        last = self.psql.value("SELECT coalesce(max(id), 0) FROM pulse.worker")
        program = Program(self.command, dict(environment) | {"PULSE_FILE": self.file}, self.output)
        self.programs.append(program)
        if registered:
            self.wait(lambda: self.new_worker(last), "the worker registers")
            program.id = self.new_worker(last)
        return program

    def new_worker(self, last):
        return self.psql.value(f"""SELECT min(id) FROM pulse.worker
            WHERE id > {last} AND state = 'alive'
              AND (tasks IS NULL OR cardinality(tasks) = 0 OR 'act' = ANY (tasks))""")

    def successor(self, program):
        """Waits for the registration that follows the program's own, and returns the number."""
        self.wait(lambda: self.new_worker(program.id), "the worker takes part under a new id")
        program.id = self.new_worker(program.id)
        return program.id

    def proxy(self):
        self.count += 1
        environment = self.place.worker_environment
        proxy = Proxy(os.path.join(self.place.folder, f"proxy{self.count}"), environment)
        self.proxies.append(proxy)
        return proxy

    def worker_row(self, program):
        return self.psql.row(f"SELECT * FROM pulse.worker WHERE id = {program.id}")

    def wait_worker(self, program, state):
        self.wait(lambda: self.worker_row(program)["state"] == state, f"the worker is {state}")

    def wait_exit(self, program):
        """The program was told to end, so it is not started anew. Returns the exit code."""
        program.is_supervised = False
        self.wait(program.has_ended, "the worker ends")
        return program.process.returncode

    def wait_idle(self, program):
        """Registered, and without a job."""
        self.wait(lambda: self.psql.value(f"""SELECT count(*) = 0 FROM pulse.job
            WHERE worker_id = {program.id} AND state = 'running'""") == "t", "the worker is idle")

    # Jobs

    def add(self, *steps, task="act", payload=None, **more):
        """Adds a job whose payload is a list of steps. Returns its id."""
        text = payload if payload is not None else json.dumps(steps)
        arguments = [quoted(task), quoted(text) + "::json"]
        arguments += [f"{name} => {quoted(str(value))}" for name, value in more.items()]
        return int(self.psql.value(f"SELECT id FROM pulse.add_job({', '.join(arguments)})"))

    def job(self, job):
        """The row of a job, live or ended, with the outcomes of its attempts in order. A claim that
        a worker gave back is no attempt: a worker may, where it can not run the job soon."""
        row = self.psql.row(f"""SELECT id, state::text, attempts, crashes, last_error, worker_id,
              progress, payload::text, NULL AS result FROM pulse.job WHERE id = {job}
            UNION ALL SELECT id, state::text, attempts, crashes, last_error, worker_id,
              NULL, payload::text, result::text FROM pulse.finished_job WHERE id = {job}""") or {}
        row["outcomes"] = (self.psql.value(f"""SELECT string_agg(outcome, ' ' ORDER BY token)
            FROM pulse.attempt WHERE job_id = {job} AND outcome <> 'released'""") or "").split()
        return row

    def consumed(self, job):
        """The outcomes of the attempts that count. A worker in which the old work of a job has not
        ended gives a new claim of the job back, which costs the job nothing."""
        return [outcome for outcome in self.job(job)["outcomes"] if outcome != "released"]

    def wait_state(self, job, *states):
        self.wait(lambda: self.job(job).get("state") in states,
                  f"job {job} is {' or '.join(states)}", lambda: self.job(job))
        return self.job(job)

    def wait_completed(self, *jobs):
        listed = ", ".join(map(str, jobs))
        self.wait(lambda: self.psql.value(f"""SELECT count(*) = {len(jobs)}
            FROM pulse.finished_job WHERE id IN ({listed}) AND state = 'completed'""") == "t",
            f"{len(jobs)} jobs are completed",
            lambda: [row for row in map(self.job, jobs) if row.get("state") != "completed"][:3])

    def told(self, job=None):
        """The lines of all work, or of one job: attempt, checkpoint, wrote."""
        if not os.path.exists(self.file):
            return []
        with open(self.file, encoding="utf-8") as file:
            lines = [json.loads(line, parse_float=str) for line in file
                     if line.endswith("\n")]
        return [line for line in lines if job is None or int(line["job"]) == job]

    def wrote(self, job):
        return [line["wrote"] for line in self.told(job)]

    def wait_wrote(self, job, value, times=1):
        self.wait(lambda: self.wrote(job).count(value) >= times,
                  f"the work of job {job} writes {value!r}",
                  lambda: (self.wrote(job), self.job(job)))

    def open(self, gate):
        with open(f"{self.file}.{gate}", "w", encoding="utf-8"):
            pass

    def set_task(self, **settings):
        listed = ", ".join(f"{name} => {quoted(value)}" for name, value in settings.items())
        self.psql.value(f"SELECT pulse.set_task('act', {listed})")

    # Judging

    def supervise(self):
        for program in self.programs:
            program.supervise()
            if program.starts > MAX_STARTS:
                raise Failed(f"the worker ended {MAX_STARTS} times, with {program.code} at last")

    def wait(self, condition, what, shown=None):
        """Bounded; starts programs anew that have ended, as a supervisor does."""
        def reading():
            self.supervise()
            try:
                return condition()
            except Gone:
                return False
        if not wait_until(reading, self.patience):
            raise Failed(f"never: {what}" + (f"; {shown()}" if shown else ""))

    def stays(self, condition, seconds, what):
        """The condition holds at each reading for so long."""
        deadline = time.monotonic() + seconds
        def broken():
            self.supervise()
            return not condition()
        while time.monotonic() < deadline:
            if wait_until(broken, deadline - time.monotonic()):
                raise Failed(f"not any more: {what}")

    @staticmethod
    def equal(seen, expected, what):
        if seen != expected:
            raise Failed(f"{what}: {seen!r}, not {expected!r}")

    @staticmethod
    def check(holds, what):
        if not holds:
            raise Failed(what)

    def threshold(self):
        """Seconds of silence after which the newest worker is lost."""
        return float(self.psql.value("""SELECT extract(epoch FROM sweep_threshold)
            FROM pulse.worker ORDER BY id DESC LIMIT 1"""))

    # Between scenarios

    def verify(self):
        """What the server itself finds wrong in its tables."""
        rows = self.psql.rows("SELECT promise, job_id, detail FROM pulse.verify()")
        self.check(not rows, f"verify() says {rows[:3]}")

    def clear(self):
        """Ends all workers, jobs and proxies, and forgets what was told."""
        for program in self.programs:
            program.kill()
        for proxy in self.proxies:
            proxy.close()
        self.programs, self.proxies = [], []
        self.psql.close()
        self.psql = Psql(self.place.environment)
        self.wait(self._clear_tables, "the tables are empty")
        for name in os.listdir(self.place.folder):
            if name.startswith("told"):
                os.unlink(os.path.join(self.place.folder, name))
        open(self.file, "w", encoding="utf-8").close()
        os.chmod(self.file, 0o666)

    def _clear_tables(self):
        try:
            self.psql.value("""SELECT pulse.declare_lost(id, 'the scenario is over')
                FROM pulse.worker WHERE state IN ('alive', 'draining')""")
            self.psql.value("SELECT pulse.cancel_job(id) FROM pulse.job")
            self.psql.value("SELECT pulse.unset_task('act')")
        except Refused as refused:
            if refused.code not in ("55P03", "PU005"):
                raise
        self.psql.value("""SELECT pulse.set_task('act', backoff => 'fixed',
            backoff_base => '100 ms', keep_completed => '1 day',
            handler => to_regprocedure('act(pulse.claimed_job)'))""")
        return self.psql.value("SELECT count(*) = 0 FROM pulse.job") == "t"

    def end(self):
        for program in self.programs:
            program.kill()
        self.psql.close()
        self.place.end()


STOP, CONTINUE, KILL, TERMINATE = (
    signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL, signal.SIGTERM)
