"""What jobs say of themselves in the direct mode: one report at a time, and of each job the newest,
however often the handler speaks."""
import asyncio


class Reports:
    """Always holds: _waiting has what no call has taken yet, by job; _ends has each job that has
    ended and still has a report to come, or under way. These reports go first."""

    def __init__(self, report, end):
        self._report, self._end = report, end
        self._waiting, self._ends = {}, {}
        self._reported = self._sender = None

    def add(self, job, members):
        # A checkpoint stays until the next, whatever progress comes between.
        self._waiting.setdefault(job, {}).update(members)
        if self._sender is None:
            self._sender = asyncio.create_task(self._send())

    def end(self, job, end):
        """Hands the end on, behind what the job has said before."""
        if job in self._waiting or job is self._reported:
            self._ends[job] = end
        else:
            self._end(job, end)

    async def _send(self):
        while self._waiting:
            job = self._reported = next(iter(self._ends or self._waiting))
            await self._report(job, self._waiting.pop(job))
            self._reported = None
            if job in self._ends and job not in self._waiting:
                self._end(job, self._ends.pop(job))
        self._sender = None
