"""Rule 7: networks that break, stall and crawl, and servers that restart and crash."""
from .kit import scenario
from .replies import judge
from .steps import THROUGH_GATE, do


def run_through(k, worker, harm):
    """The harm comes while a job runs, which completes, and so does the next."""
    job = k.add(*THROUGH_GATE)
    k.wait_wrote(job, "began")
    harm()
    k.open("go")
    row = judge(k, worker, job)
    judge(k, worker, k.add(*do(write="next")))
    return row


@scenario("7.1", "all connections break while a job runs")
def cut(k):
    proxy = k.proxy()
    worker = k.worker(proxy)
    run_through(k, worker, proxy.cut)


@scenario("7.2", "a slow network makes no beat late")
def slow(k):
    proxy = k.proxy()
    proxy.delay = 0.04
    worker = k.worker(proxy)
    def is_alive():
        return k.worker_row(worker)["state"] == "alive"
    run_through(k, worker, lambda: k.stays(is_alive, 1.2 * k.threshold(), "the worker lives"))
    k.check(is_alive(), "the worker lives under its first id")


@scenario("7.3", "a network that passes nothing for less than the threshold loses no worker")
def stalled(k):
    proxy = k.proxy()
    worker = k.worker(proxy)
    def stall():
        proxy.passes.clear()
        try:
            k.stays(lambda: True, 0.4 * k.threshold(), "")
        finally:
            proxy.passes.set()
    run_through(k, worker, stall)
    k.equal(k.worker_row(worker)["state"], "alive", "the state of the first id")


def restart(k, mode):
    def harm():
        k.place.restart(mode)
        k.wait(lambda: k.psql.value("SELECT 1") == "1", "the server is back")
    worker = k.worker()
    run_through(k, worker, harm)


@scenario("7.4", "the server restarts while a job runs", server=True)
def restarts(k):
    restart(k, "fast")


@scenario("7.5", "the server crashes while a job runs", server=True)
def crashes(k):
    restart(k, "immediate")
