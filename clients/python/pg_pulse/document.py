"""JSON as the library writes it: for payloads, results, checkpoints and lines."""
import dataclasses
import datetime
import decimal
import enum
import json
import re
import reprlib
import uuid
from collections.abc import Iterable, Mapping

_MAX_SECONDS = 1_000_000_000
_CUT = "\n…\n".encode()


# What the server takes and Python does not read: numbers of 5,000 digits, lists 1,000 deep.
NotRead = (ValueError, RecursionError)


class NotJson(TypeError):
    """A value that JSON does not have, or too much of it."""


class Encoded:
    """A value as the text that encode() has made of it."""

    def __init__(self, value, what):
        # Read by name, so that a value may come from another copy of the library.
        self.pg_pulse_json = encode(value, what)


class JsonText(Encoded):
    """A document of JSON as a text, which is stored digit for digit."""

    def __init__(self, text: str) -> None:
        json.loads(text)
        # A line break is white space between tokens, and would end a line of the protocol.
        self.pg_pulse_json = re.sub(r"[\r\n]", " ", text)


def _plain(value):
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (decimal.Decimal, uuid.UUID)):
        return str(value)
    if hasattr(value, "pg_pulse_json"):
        raise TypeError("JsonText is a whole document, and no part of another")
    raise TypeError(f"it has a {type(value).__name__}")


def _encoder(ensure_ascii):
    return json.JSONEncoder(ensure_ascii=ensure_ascii, allow_nan=False, default=_plain,
                            separators=(",", ":")).encode


_readable, _ascii = _encoder(False), _encoder(True)


def encode(value, what):
    """The text of a value; `what` names the value where it is no JSON."""
    if value is None:
        return "null"
    try:
        # Some objects answer to any name.
        if isinstance(text := getattr(value, "pg_pulse_json", None), str):
            return text
        text = _readable(value)
        text.encode()
        return text
    except UnicodeEncodeError:  # half of a surrogate pair
        return _ascii(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotJson(f"{what} is no JSON: {error}") from None


def bounded(text, most):
    """A text of so many bytes of UTF-8. Of a longer traceback the beginning has the frames of the
    handler, and the end says what happened."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > most:
        half = (most - len(_CUT)) // 2
        encoded = encoded[:half] + _CUT + encoded[-half:]
    return encoded.decode("utf-8", "ignore")


def seconds_of(value, what):
    """A number of seconds, as the worker takes it; of a timedelta its seconds."""
    number = value.total_seconds() if isinstance(value, datetime.timedelta) else float(value)
    if not 0 <= number <= _MAX_SECONDS:
        raise ValueError(f"{what} is {value}, and no number of seconds from 0 to {_MAX_SECONDS}")
    return number


def list_of(values):
    """The elements of an argument that is a list. Letters of a text are not what is meant."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"a list is wanted, and {reprlib.repr(values)} is given")
    return list(values)


_scan = json.JSONDecoder(strict=False).scan_once
_space = re.compile(r"[\s,:]*").match


def line_value(text):
    """The value of a line that the worker has written: json.loads() checks once more what the
    worker has checked, which takes as long as the reading."""
    return _scan(text, 0)[0]


def member_text(text, name):
    """The member of an object as the text of the object spells it; None where there is none."""
    at = _space(text, text.index("{") + 1).end()
    while text[at] != "}":
        key, at = _scan(text, at)
        begin = _space(text, at).end()
        _, at = _scan(text, begin)
        if key == name:
            return text[begin:at]
        at = _space(text, at).end()
    return None
