"""Errors of a database as those of this library: a class for each SQLSTATE of pg_pulse, and
sentences for the faults of a connection that a producer meets."""
import re

from .generated.errors import CLASSES, HINTS, INSTALL, UPDATE, NoExtension, OtherVersion

VERSION = "0.2.0"
# What a statement says of a schema, function, type or column that is not there.
_MISSING = {"3F000", "42883", "42P01", "42704", "42703"}


def sqlstate(error):
    """Of an error of a driver, or of the error that it wraps; None without one."""
    for each in (error, getattr(error, "orig", None), error.__cause__):
        code = getattr(each, "sqlstate", None) or getattr(each, "pgcode", None)
        if code:
            return code, each
    return None, None


def translate(error):
    """The error of a database as one of this library; None for other errors."""
    code, origin = sqlstate(error)
    diag = getattr(origin, "diag", None)
    message = getattr(diag, "message_primary", None) or str(origin)
    if code in _MISSING:
        if code == "3F000" and '"pulse"' in message:
            return no_extension(code)
        if re.search(r"\bpulse\.|column", message):
            return other_version(f"another version: {message}", code)
    if code not in CLASSES:
        return None
    hint = getattr(diag, "message_hint", None) or HINTS.get(code)
    return CLASSES[code](message, code, hint, getattr(diag, "message_detail", None))


def no_extension(code=None):
    return NoExtension("the database has no extension pg_pulse", code, INSTALL)


def other_version(found, code=None):
    text = f"this library is for pg_pulse {VERSION}, and the database has {found}"
    return OtherVersion(text, code, UPDATE)
