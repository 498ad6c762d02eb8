"""The task `act` with the library for Python. See ../README.md."""
from act import End, Told, Work, parse, spell
from pg_pulse import Failure, JsonText, task


def failure(end):
    if end.kind == "rest":
        return Failure(end.error(), payload=JsonText(spell(end.value)))
    return Failure(end.error(), retry=end.kind != "fail_for_good")


@task
def act(payload, job):
    work = Work(job.id, job.attempt, parse(job.last_checkpoint_text), job.progress,
                lambda text: job.checkpoint(JsonText(text)), lambda: job.cancelled)
    try:
        result = work.run(parse(job.payload_text))
    except Told:
        raise job.cancelled from None
    except End as end:
        if end.kind == "snooze":
            return job.snooze(float(end.value))
        raise failure(end) from None
    return None if result is None else JsonText(result)
