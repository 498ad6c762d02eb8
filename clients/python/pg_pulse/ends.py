"""How an attempt has ended, as members of a line of the worker protocol: result, error, retry,
retry_in, payload, snooze, checkpoint, done."""
import json
import traceback

from .document import Encoded, NotJson, bounded, encode

_MAX_ERROR_BYTES = 8000
# As the worker bounds a line of the program.
_MAX_LINE_BYTES = 1024 * 1024
# What the handler says of its transaction is not so.
UNCOMMITTED = {"error": "its transaction did not commit"}
_DOCUMENTS = {"checkpoint": "the checkpoint", "payload": "the rest of the work"}

_quoted = json.encoder.encode_basestring_ascii


def error_text(raised):
    """The traceback of whatever a handler has raised, without frames of the library, bounded."""
    frames = raised.__traceback__
    while frames and frames.tb_frame.f_globals.get("__package__") == __package__:
        frames = frames.tb_next
    try:
        text = "".join(traceback.format_exception(type(raised), raised, frames)).rstrip()
    except BaseException:
        text = f"the handler raised a {type(raised).__name__} that cannot be shown"
    # As pulse-worker writes what no text of the server has.
    return bounded(text.replace("\0", "\ufffd"), _MAX_ERROR_BYTES)


def _end_of(value):
    # Of an object that answers to any name, or to none, it is no end.
    try:
        end = getattr(value, "pg_pulse_end", None)
    except Exception:
        return None
    return end if isinstance(end, dict) else None


def _of_end(end, value):
    documents = {name: Encoded(end[name], _DOCUMENTS[name]) for name in _DOCUMENTS if name in end}
    return ({} if "snooze" in end else {"error": error_text(value)}) | end | documents


def _of_value(job, value):
    if value is not None and (end := _end_of(value)):
        return _of_end(end, value)
    if job.is_completed:
        return {"done": True}
    for name in job.unanswered:
        # Another attempt would commit the rows of the handler once more.
        return {"error": f"{name}() was not awaited: await job.{name}(…), which has not taken part "
                         "in the transaction", "retry": False}
    return {"result": None if value is None else Encoded(
        value, f"the result of {job.identifier}")}


def of_raised(raised):
    """The end of a handler that has raised something."""
    try:
        return _of_end(_end_of(raised) or {}, raised)
    except BaseException as error:  # of code of the application that writes the value
        return _of_end({}, error)


def of_value(job, value):
    """The end of a handler that has returned."""
    try:
        return _of_value(job, value)
    except BaseException as error:
        return of_raised(error)


def line(job, members, what):
    """What a job says of itself, as a line."""
    words = ",".join([f'"{name}":{encode(value, what)}' for name, value in members.items()])
    text = f'{{"id":{_quoted(job.key)},{words}}}\n'.encode()
    if len(text) > _MAX_LINE_BYTES:
        raise NotJson(f"{what} has {len(text)} bytes, and a line has at most {_MAX_LINE_BYTES}: "
                      "store it elsewhere, and give its place")
    return text


def line_of_end(job, end):
    """The line of an end, and the end; a failure where a line does not hold the end."""
    what = f"the answer of {job.identifier}"
    try:
        return line(job, end, what), end
    except NotJson as error:
        end = of_raised(error)
        return line(job, end, what), end
