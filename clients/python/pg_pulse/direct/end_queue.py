"""The ends of jobs in the direct mode, reported together: a call for all ends that have come
meanwhile."""
import asyncio

from ..calls import array_literal, interval
from ..document import encode
from ..ends import UNCOMMITTED
from ..generated.errors import ClaimLost
from .session import is_passing

# A job that another transaction holds is asked for again.
_BUSY_SECONDS = 0.05
_MOST_TOGETHER, _MOST_BYTES = 500, 4 << 20
_CLAIMS = "%s::text::bigint[], %s::text::bigint[]"


def _text(end, name):
    text = encode(end.get(name), name)
    return None if text == "null" else text


def _seconds(number):
    return None if number is None else interval(number)


# For each kind of end, which has the member of that name, the call that reports several, and the
# arguments of one end behind id and token.
_REPORTS = {
    # The handler says that its transaction has ended the job. ClaimLost is a good end.
    "done": (f"SELECT 'held' FROM unnest({_CLAIMS}) AS e(i, t), pulse.held_job(i, t)",
             lambda end: []),
    "snooze": (f"""SELECT NULL FROM unnest({_CLAIMS}, %s::text::interval[], %s::text::json[])
        AS e(i, t, s, c), pulse.snooze(i, t, s, c)""",
               lambda end: [_seconds(end["snooze"]), _text(end, "checkpoint")]),
    "late": (f"SELECT outcome FROM pulse.fail_late({_CLAIMS}, %s::text::text[], %s::text::text[])",
             lambda end: [end["error"], end["late"]]),
    "error": (f"""SELECT outcome FROM pulse.fail_many({_CLAIMS}, %s::text::text[],
        %s::text::bool[], %s::text::interval[], %s::text::json[])""",
              lambda end: [end["error"], end.get("retry", True), _seconds(end.get("retry_in")),
                           _text(end, "payload")]),
    "result": (f"SELECT outcome FROM pulse.complete_many({_CLAIMS}, %s::text::json[])",
               lambda end: [_text(end, "result")]),
}


def _size(end):
    return sum(len(getattr(each, "pg_pulse_json", "")) for each in end.values())


class EndQueue:
    def __init__(self, ask, forget):
        self._ask, self._forget = ask, forget
        self._waiting = []
        self._sender = None

    def add(self, job, end):
        self._waiting.append((job, end))
        if self._sender is None:
            self._sender = asyncio.create_task(self._send())

    async def _send(self):
        while self._waiting:
            ends = self._take()
            by_kind = {kind: [] for kind in _REPORTS}
            for job, end in ends:
                by_kind[next(kind for kind in _REPORTS if kind in end)].append((job, end))
            for kind, some in by_kind.items():
                await self._report(kind, some)
        self._sender = None

    def _take(self):
        size = count = 0
        while count < min(len(self._waiting), _MOST_TOGETHER) and size < _MOST_BYTES:
            size += _size(self._waiting[count][1])
            count += 1
        ends, self._waiting = self._waiting[:count], self._waiting[count:]
        return ends

    async def _report(self, kind, ends):
        if not ends:
            return
        call, values_of = _REPORTS[kind]
        try:
            rows = [(job.id, job.token, *values_of(end)) for job, end in ends]
            answers = await self._ask(call, [array_literal(column) for column in zip(*rows)])
            for (job, end), (outcome,) in zip(ends, answers):
                self._reported(job, end, outcome)
            if ("busy",) in answers:
                await asyncio.sleep(_BUSY_SECONDS)
        except Exception as error:
            if len(ends) == 1:
                self._refused(*ends[0], error)
            else:
                for each in ends:
                    await self._report(kind, [each])

    def _reported(self, job, end, outcome):
        if outcome == "busy":
            self._waiting.append((job, end))
        elif outcome == "held":
            self.add(job, UNCOMMITTED)
        else:
            self._forget(job)

    def _refused(self, job, end, error):
        """An end that the server refuses is a failure in its turn, once. A server that refuses for
        now has not judged the end, and a worker that leaves asks no more."""
        if isinstance(error, ClaimLost) or is_passing(error) or "is_refusal" in end:
            self._forget(job)
        else:
            self.add(job, {"error": f"the end was refused: {error}", "is_refusal": True})
