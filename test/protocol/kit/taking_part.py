"""Rules 1, 2.3 to 2.7, 3 and 9: a worker comes, claims, obeys and leaves."""
import statistics

from .kit import KILL, TERMINATE, scenario
from .steps import THROUGH_GATE, do
from .wait import wait_until


@scenario("1.1", "a worker registers its task, and leaves jobs of other tasks")
def registers(k):
    worker = k.worker()
    other = k.add(task="other")
    k.wait_completed(k.add(*do(write="ran")))
    tasks = k.worker_row(worker)["tasks"]  # none: the claims name the tasks
    k.check(tasks in (["act"], [], None), f"the worker registered {tasks}")
    k.equal((k.job(other)["state"], k.job(other)["attempts"]), ("ready", 0), "another task's job")


@scenario("1.2", "a worker attaches a session")
def attaches(k):
    worker = k.worker()
    k.wait(lambda: k.psql.value(f"""SELECT attached FROM pulse.worker_status
        WHERE id = {worker.id}""") == "t", "a session stands for the worker")


@scenario("1.3", "no session rests inside a transaction")
def rests_in_no_transaction(k):
    worker = k.worker()
    def nothing_rests():
        return k.psql.value("""SELECT count(*) = 0 FROM pg_stat_activity
            WHERE state LIKE 'idle in transaction%' AND pid <> pg_backend_pid()
              AND state_change < clock_timestamp() - interval '250 ms'""") == "t"
    k.wait_idle(worker)
    k.stays(nothing_rests, 1, "no session rests in a transaction of an idle worker")
    job = k.add(*THROUGH_GATE)
    k.wait_wrote(job, "began")
    k.stays(nothing_rests, 1, "no session rests in a transaction while a job runs")
    k.open("go")
    k.wait_completed(job)


@scenario("1.4", "unusual defaults of the database change nothing", server=True)
def survives_defaults(k):
    settings = {"default_transaction_isolation": "repeatable read", "statement_timeout": "1s",
                "default_transaction_read_only": "on", "idle_session_timeout": "1s"}
    for name, value in settings.items():
        k.psql.value(f"ALTER DATABASE act SET {name} = '{value}'")
    try:
        worker = k.worker()
        job = k.add(*THROUGH_GATE)
        k.wait_wrote(job, "began")
        k.stays(lambda: k.job(job)["state"] == "running", k.threshold(), "the job runs")
        k.open("go")
        k.wait_completed(job)
        k.equal(k.job(job)["outcomes"], ["completed"], "the job's attempts")
        k.equal(worker.starts, 1, "starts of the worker")
    finally:
        for name in settings:
            k.psql.value(f"ALTER DATABASE act RESET {name}")


@scenario("2.3", "a worker that is declared lost takes part under a new id")
def registers_anew(k):
    worker = k.worker()
    job = k.add(*THROUGH_GATE)
    k.wait_wrote(job, "began")
    k.psql.value(f"SELECT pulse.declare_lost({worker.id}, 'by the kit')")
    k.open("go")
    k.successor(worker)
    k.wait_completed(job)
    # A worker that beats after its loss has not died: its attempt counts as interrupted then.
    k.check(k.job(job)["outcomes"] in (["lost", "completed"], ["interrupted", "completed"]),
            f"the job's attempts: {k.job(job)}")


def begin_job(k, worker):
    job = k.add(*THROUGH_GATE)
    k.wait_wrote(job, "began")
    worker.is_supervised = False
    return job


@scenario("2.4", "a worker that is drained finishes its job, claims no other, and leaves")
def drains(k):
    worker = k.worker()
    job = begin_job(k, worker)
    k.psql.value(f"SELECT pulse.drain_worker({worker.id})")
    other = k.add(*do(write="ran"))
    k.open("go")
    k.wait_worker(worker, "stopped")
    k.wait_exit(worker)
    k.equal(k.job(job)["outcomes"], ["completed"], "the attempts of the running job")
    k.equal((k.job(other)["state"], k.job(other)["attempts"]), ("ready", 0), "the other job")


@scenario("2.5", "a worker that is stopped ends its job and leaves")
def stops(k):
    worker = k.worker()
    job = begin_job(k, worker)
    k.psql.value(f"SELECT pulse.stop_worker({worker.id})")
    k.wait_worker(worker, "stopped")
    k.equal(k.wrote(job), ["began"], "the lines of the job")
    k.equal(k.job(job)["crashes"], 0, "crashes of the job")


@scenario("2.6", "the work of a revoked job ends, and its outcome does not count")
def ends_revoked_work(k):
    worker = k.worker()
    job = k.add(*THROUGH_GATE)
    k.wait_wrote(job, "began")
    k.psql.value(f"SELECT pulse.requeue_job({job}, 'by the kit')")
    k.wait_wrote(job, "began", times=2)
    k.open("go")
    k.wait_completed(job)
    k.equal(k.consumed(job), ["interrupted", "completed"], "the job's attempts")
    k.equal(k.wrote(job), ["began", "began", "ended"], "the job's lines")
    k.equal(worker.starts, 1, "starts of the worker")


@scenario("2.7", "the work of a cancelled job ends")
def ends_cancelled_work(k):
    k.worker()
    job = k.add(*THROUGH_GATE)
    k.wait_wrote(job, "began")
    k.psql.value(f"SELECT pulse.cancel_job({job}, 'by the kit')")
    k.wait_state(job, "cancelled")
    k.open("go")
    k.wait_completed(k.add(*do(write="next")))
    k.equal(k.wrote(job), ["began"], "the job's lines")


@scenario("3.1", "a job starts when its add has committed")
def starts_at_once(k):
    k.wait_idle(k.worker())
    jobs = []
    for _ in range(5):
        jobs.append(k.add(*do(write="ran")))
        k.wait_completed(jobs[-1])
    waits = [float(row["waited"]) for row in k.psql.rows(f"""SELECT
        extract(epoch FROM a.claimed_at - j.created_at) AS waited
        FROM pulse.attempt AS a JOIN pulse.finished_job AS j ON j.id = a.job_id
        WHERE j.id IN ({', '.join(map(str, jobs))})""")]
    k.check(statistics.median(waits) < 0.8, f"jobs waited {waits} seconds for their claims")


@scenario("3.1", "a job that a job has added runs")
def runs_added_jobs(k):
    k.worker()
    k.wait_completed(k.add(*do(add=do(write="added"))))
    k.wait(lambda: any(line["wrote"] == "added" for line in k.told()), "the added job runs")


@scenario("3.2", "a death costs no last attempt of a job that had not begun")
def claims_what_it_starts(k):
    worker = k.worker()
    jobs = [k.add(*do(write="began", wait=0.5), max_attempts=1) for _ in range(40)]
    k.wait(lambda: len(k.told()) >= 2, "some jobs begin")
    worker.signal(KILL)
    worker.is_supervised = False
    k.wait(lambda: k.psql.value("SELECT pulse.sweep()")
           and k.worker_row(worker)["state"] == "lost", "the worker is lost")
    k.wait(lambda: k.psql.value("""SELECT count(*) = 0 FROM pulse.job
        WHERE state = 'running'""") == "t", "the jobs are recovered")
    # A job that was claimed last may not have come to its first line.
    slots = int(k.psql.value(f"""SELECT coalesce(slots, 1) FROM pulse.worker_status
        WHERE id = {worker.id}""") or 1)
    unbegun = [job for job in jobs if k.job(job)["state"] == "failed" and not k.wrote(job)]
    k.check(len(unbegun) <= slots, f"{len(unbegun)} jobs failed that had not begun")


@scenario("3.3", "a worker outlasts a time without claims", server=True)
def outlasts_refused_claims(k):
    k.wait_idle(k.worker())
    def set_claims(state):
        k.psql.value(f"ALTER SYSTEM SET pulse.claims = {state}")
        k.psql.value("SELECT pg_reload_conf()")
        k.wait(lambda: k.psql.value("SHOW pulse.claims") == state, f"claims are {state}")
    set_claims("off")
    try:
        for _ in range(10):  # a session of the worker may hear of it a moment later
            job = k.add(*do(write="ran"))
            if not wait_until(lambda: k.job(job)["state"] != "ready", 0.5):
                break
        k.stays(lambda: k.job(job)["state"] == "ready", 1.5, "the job is not claimed")
    finally:
        set_claims("on")
    k.wait_completed(job)
    k.equal(k.job(job)["outcomes"], ["completed"], "the job's attempts")


@scenario("3.4", "two workers run each job once")
def shares_jobs(k):
    k.worker(), k.worker()
    jobs = [k.add(*do(write="ran")) for _ in range(40)]
    k.wait_completed(*jobs)
    k.equal(sorted(int(line["job"]) for line in k.told()), jobs, "jobs that ran")


@scenario("3.5", "jobs of a queue run one after the other, in order, beside a second worker")
def keeps_queues(k):
    k.worker(), k.worker()
    jobs = [k.add(*do(write="began", wait=0.01), *do(write="ended"), queue_name="one")
            for _ in range(12)]
    k.wait_completed(*jobs)
    k.equal([(int(line["job"]), line["wrote"]) for line in k.told()],
            [(job, word) for job in jobs for word in ("began", "ended")], "what ran, in order")


@scenario("9.1", "an idle worker leaves on SIGTERM")
def leaves_idle(k):
    worker = k.worker()
    k.wait_completed(k.add(*do(write="ran")))
    worker.signal(TERMINATE)
    k.equal(k.wait_exit(worker), 0, "the worker's exit code")
    k.equal(k.worker_row(worker)["state"], "stopped", "the worker's state")


@scenario("9.2", "a busy worker ends its job or gives it back, and leaves")
def leaves_busy(k):
    worker = k.worker()
    job = begin_job(k, worker)
    worker.signal(TERMINATE)
    k.open("go")
    k.wait_exit(worker)
    k.equal(k.worker_row(worker)["state"], "stopped", "the worker's state")
    row = k.job(job)
    k.check(row["state"] in ("completed", "ready"), f"the job is {row}")
    k.equal(row["crashes"], 0, "crashes of the job")


@scenario("9.3", "no work goes on when its worker has gone")
def leaves_no_work(k):
    worker = k.worker()
    job = k.add(*THROUGH_GATE)
    k.wait_wrote(job, "began")
    worker.signal(KILL)
    k.wait_wrote(job, "began", times=2)
    k.open("go")
    k.wait_completed(job)
    k.equal(k.wrote(job), ["began", "began", "ended"], "the job's lines")
