"""Rules 2.1, 2.2 and 8: beats, silence and death."""
from .kit import CONTINUE, KILL, STOP, scenario
from .sql import Psql
from .steps import THROUGH_GATE, do


@scenario("2.1", "a job that takes longer than the threshold costs its worker nothing")
def beats_while_a_job_runs(k):
    worker = k.worker()
    job = k.add(*THROUGH_GATE)
    k.wait_wrote(job, "began")
    k.stays(lambda: k.worker_row(worker)["state"] == "alive", 1.5 * k.threshold(),
            "the worker is alive")
    k.open("go")
    k.wait_completed(job)
    k.equal(k.job(job)["outcomes"], ["completed"], "the job's attempts")


@scenario("2.8", "a job that leaves its program no time costs its worker nothing")
def beats_while_a_job_spins(k):
    worker = k.worker()
    job = k.add(*do(spin=1.3 * k.threshold()))
    k.wait_completed(job)
    k.equal(k.job(job)["outcomes"], ["completed"], "the job's attempts")
    k.equal(k.worker_row(worker)["state"], "alive", "the worker's state")


@scenario("2.2", "a claim of which the worker does not know goes back")
def gives_back_unknown_claims(k):
    worker = k.worker()
    for _ in range(5):  # a claim of the worker's own may be under way when the worker is stopped
        k.wait_idle(worker)
        worker.signal(STOP)
        job = k.add(*do(write="ran"))
        claimed = k.psql.value(
            f"SELECT id FROM pulse.claim({worker.id}, tasks => ARRAY['act'])")
        worker.signal(CONTINUE)
        k.wait_completed(job)
        if claimed:
            break
    k.equal(claimed, str(job), "the job that the kit claims in the worker's name")
    k.equal(k.wrote(job), ["ran"], "the job's lines")
    k.check("lost" not in k.job(job)["outcomes"], f"no crash is counted: {k.job(job)}")
    k.equal(worker.starts, 1, "starts of the worker")


@scenario("8.1", "a pause of less than the threshold costs nothing")
def short_pause(k):
    worker = k.worker()
    job = k.add(*THROUGH_GATE)
    k.wait_wrote(job, "began")
    worker.signal(STOP)
    k.stays(lambda: True, 0.4 * k.threshold(), "")
    worker.signal(CONTINUE)
    k.open("go")
    k.wait_completed(job)
    k.equal(k.job(job)["outcomes"], ["completed"], "the job's attempts")
    k.equal(k.worker_row(worker)["state"], "alive", "the worker's state")


@scenario("8.2", "after a longer pause the old claim counts for nothing")
def long_pause(k):
    paused = k.worker()
    job = k.add(*THROUGH_GATE)
    k.wait_wrote(job, "began")
    paused.signal(STOP)
    second = k.worker()
    k.wait_wrote(job, "began", times=2)
    k.equal(k.job(job)["outcomes"], ["lost"], "the first attempt")
    paused.signal(CONTINUE)
    k.open("go")
    k.wait_completed(job)
    k.equal(k.job(job)["outcomes"].count("completed"), 1, "completions of the job")
    k.equal(k.job(job)["worker_id"], second.id and int(second.id), "who completed the job")
    k.wait(lambda: k.new_worker(second.id), "the paused worker takes part under a new id")


@scenario("8.3", "the job of a killed worker runs again, with a crash counted")
def killed(k):
    worker = k.worker()
    job = k.add(*THROUGH_GATE)
    k.wait_wrote(job, "began")
    worker.signal(KILL)
    k.wait_wrote(job, "began", times=2)
    k.equal(k.job(job)["crashes"], 1, "crashes of the job")
    k.open("go")
    k.wait_completed(job)
    k.equal(k.job(job)["outcomes"], ["lost", "completed"], "the job's attempts")


@scenario("8.4", "a worker recovers the jobs of another where no background worker does",
          server=True)
def sweeps(k):
    k.place.restart(settings={"pulse.databases": ""})
    try:
        k.wait(lambda: k.psql.value("SELECT 1") == "1", "the server is back")
        job = k.add(*do(write="ran"))
        ghost = Psql(k.place.environment)
        me = ghost.value("SELECT id FROM pulse.register_worker('ghost', '{act}')")
        ghost.value(f"SELECT pulse.attach_worker({me})")
        ghost.value(f"SELECT id FROM pulse.claim({me})")
        ghost.close()
        k.worker()
        k.wait_completed(job)
        k.equal(k.job(job)["outcomes"], ["lost", "completed"], "the job's attempts")
    finally:
        k.clear()
        k.place.restart(settings={"pulse.databases": "act"})
        k.wait(lambda: k.psql.value("SELECT 1") == "1", "the server is back")
