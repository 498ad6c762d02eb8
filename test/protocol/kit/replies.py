"""Rule 6: the reply to each call is lost, or the call never arrives."""
from .kit import CONTINUE, STOP, TERMINATE, Skipped, scenario
from .steps import THROUGH_GATE, do

CLAIM = r"pulse\.claim(_job)?\("
COMPLETE = r"pulse\.(complete|complete_many|perform_job)\("
FAIL = r"pulse\.fail(_many|_late)?\("
SNOOZE = r"pulse\.snooze\("
PROGRESS = r"pulse\.progress\("
BEAT = r"pulse\.heartbeat\("


def lose(k, fault, pattern, *steps):
    """Plays a job during which the fault comes once. Returns the worker and the job's row."""
    proxy = k.proxy()
    worker = k.worker(proxy)
    k.wait_idle(worker)
    # A claim that comes before the job would lose an empty reply.
    worker.signal(STOP)
    job = k.add(*steps, max_attempts=5)
    proxy.arm(fault, pattern)
    worker.signal(CONTINUE)
    def ended():
        return k.job(job).get("state") in ("completed", "failed")
    k.wait(lambda: proxy.fired.is_set() or ended(), "the worker makes the call or ends the job")
    k.open("go")
    if not proxy.fired.is_set():
        raise Skipped("the worker makes no such call for this job")
    return worker, judge(k, worker, job)


def judge(k, worker, job):
    """The job completes, once. No attempt counts as a crash, unless the worker ended."""
    row = k.wait_state(job, "completed")
    k.equal(row["outcomes"].count("completed"), 1, "completions of the job")
    if worker.starts == 1:
        k.check("lost" not in row["outcomes"], f"the worker lives, and its job is {row}")
    return row


@scenario("6.1", "the reply of a claim is lost")
def claim(k):
    _, row = lose(k, "drop_reply", CLAIM, *do(write="ran"))
    k.equal(k.wrote(row["id"]), ["ran"], "the job's lines")


@scenario("6.2", "the reply of a completion is lost")
def complete(k):
    worker, row = lose(k, "drop_reply", COMPLETE, *do(write="ran"))
    if worker.starts == 1:
        k.equal(row["outcomes"], ["completed"], "the job's attempts")
        k.equal(k.wrote(row["id"]), ["ran"], "the job's lines")


@scenario("6.3", "the reply of a failure is lost")
def fail(k):
    worker, row = lose(k, "drop_reply", FAIL, {"once": do(write="first", fail="once")},
                       *do(write="second"))
    if worker.starts == 1:
        k.equal(row["outcomes"], ["failed", "completed"], "the job's attempts")
    k.equal(k.wrote(row["id"]), ["first", "second"], "the job's lines")


@scenario("6.4", "the reply of a snooze is lost")
def snooze(k):
    worker, row = lose(k, "drop_reply", SNOOZE, {"once": do(write="first", snooze=0)},
                       *do(write="second"))
    k.equal(k.wrote(row["id"]), ["first", "second"], "the job's lines")
    if worker.starts == 1:
        k.equal(row["outcomes"], ["completed"], "the job's attempts")


@scenario("6.5", "the reply of a progress report is lost")
def progress(k):
    lose(k, "drop_reply", PROGRESS, *do(progress=0.5, until="go"), *do(write="ended"))


@scenario("6.6", "the reply of a heartbeat is lost while a job runs")
def beat(k):
    lose(k, "drop_reply", BEAT, *THROUGH_GATE)


def begin_badly(k, pattern):
    proxy = k.proxy()
    proxy.arm("drop_reply", pattern)
    worker = k.worker(proxy, registered=False)
    k.wait(proxy.fired.is_set, "the worker makes the call")
    job = k.add(*do(write="ran"))
    judge(k, worker, job)
    k.equal(k.wrote(job), ["ran"], "the job's lines")


@scenario("6.7", "the reply of the registration is lost")
def register(k):
    begin_badly(k, r"pulse\.register_worker\(")


@scenario("6.7", "the reply of attaching is lost")
def attach(k):
    begin_badly(k, r"pulse\.attach_worker\(")


@scenario("6.8", "the reply of a wait is lost")
def wait(k):
    proxy = k.proxy()
    worker = k.worker(proxy)
    k.wait_idle(worker)
    proxy.arm("drop_reply", r"pulse\.wait_for_job\(")
    # The wait that is under way ends with the first job, the armed one with the second.
    jobs = [k.add(*do(write="ran"))]
    k.wait_completed(*jobs)
    jobs.append(k.add(*do(write="ran")))
    for job in jobs:
        judge(k, worker, job)
        k.equal(k.wrote(job), ["ran"], "the job's lines")


@scenario("6.8", "the reply of a sweep is lost")
def sweep(k):
    proxy = k.proxy()
    proxy.arm("drop_reply", r"pulse\.sweep\(")
    worker = k.worker(proxy)
    jobs = [k.add(*do(write="ran"))]
    k.wait_completed(*jobs)
    if not proxy.wait_fired(2 * k.threshold()):
        raise Skipped("the worker does not sweep beside a background worker")
    judge(k, worker, k.add(*do(write="ran")))


@scenario("6.9", "the reply of the deregistration is lost")
def deregister(k):
    proxy = k.proxy()
    worker = k.worker(proxy)
    k.wait_completed(k.add(*do(write="ran")))
    proxy.arm("drop_reply", r"pulse\.deregister_worker\(")
    worker.signal(TERMINATE)
    k.wait_exit(worker)
    k.equal(k.worker_row(worker)["state"], "stopped", "the worker's state")


@scenario("6.10", "a claim never arrives")
def no_claim(k):
    _, row = lose(k, "drop_request", CLAIM, *do(write="ran"))
    k.equal(k.wrote(row["id"]), ["ran"], "the job's lines")


@scenario("6.10", "a completion never arrives")
def no_completion(k):
    lose(k, "drop_request", COMPLETE, *do(write="ran"))


@scenario("6.10", "a failure never arrives")
def no_failure(k):
    lose(k, "drop_request", FAIL, {"once": do(fail="once")}, *do(write="second"))


@scenario("6.10", "a heartbeat never arrives while a job runs")
def no_beat(k):
    lose(k, "drop_request", BEAT, *THROUGH_GATE)
