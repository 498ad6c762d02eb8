# Written by test/docs/generate; do not edit.
from ..pulse_error import PulseError


class ClaimLost(PulseError):
    """SQLSTATE PU001"""


class WorkerUnknown(PulseError):
    """SQLSTATE PU002"""


class SettingsRefused(PulseError):
    """SQLSTATE PU003"""


class OutOfRange(PulseError):
    """SQLSTATE PU004"""


class NotFound(PulseError):
    """SQLSTATE PU005"""


class InTransaction(PulseError):
    """SQLSTATE PU006"""


class WrongIsolation(PulseError):
    """SQLSTATE PU007"""


class ClaimsOff(PulseError):
    """SQLSTATE PU008"""


class JobsWouldBeLost(PulseError):
    """SQLSTATE PU009"""


class JobMustNotRun(PulseError):
    """SQLSTATE PU010"""


class NotGranted(PulseError):
    """SQLSTATE 42501"""


class ReadOnly(PulseError):
    """SQLSTATE 25006"""


class Aborted(PulseError):
    """SQLSTATE 25P02"""


class NoExtension(PulseError):
    """The database has no pg_pulse."""


class OtherVersion(PulseError):
    """The database has a pg_pulse that this library is not made for."""


CLASSES = {
    "PU001": ClaimLost,
    "PU002": WorkerUnknown,
    "PU003": SettingsRefused,
    "PU004": OutOfRange,
    "PU005": NotFound,
    "PU006": InTransaction,
    "PU007": WrongIsolation,
    "PU008": ClaimsOff,
    "PU009": JobsWouldBeLost,
    "PU010": JobMustNotRun,
    "42501": NotGranted,
    "25006": ReadOnly,
    "25P02": Aborted,
}
HINTS = {
    "42501": ("The owner of the extension grants it: SELECT pulse.grant_producer(ROLE)."),
    "25006": ("Connect to the primary, or begin the transaction with READ WRITE."),
    "25P02": ("An earlier statement of this transaction has failed: ROLLBACK, and repeat all "
             "of it."),
}
INSTALL = ("Install pg_pulse on the server and run CREATE EXTENSION pg_pulse in this "
           "database.")
UPDATE = ("Install those files of pg_pulse on the server and run ALTER EXTENSION pg_pulse "
          "UPDATE, or pip install the version of pg-pulse that the extension has.")
__all__ = [
    "Aborted",
    "ClaimLost",
    "ClaimsOff",
    "InTransaction",
    "JobMustNotRun",
    "JobsWouldBeLost",
    "NoExtension",
    "NotFound",
    "NotGranted",
    "OtherVersion",
    "OutOfRange",
    "ReadOnly",
    "SettingsRefused",
    "WorkerUnknown",
    "WrongIsolation",
]
