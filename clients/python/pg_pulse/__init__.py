"""Adds jobs of pg_pulse in your transactions, and runs them in this program."""
from .calls import check_version
from .document import JsonText, NotJson
from .generated import errors as _errors
from .generated import functions
from .generated.errors import *
from .generated.functions import *
from .job import Job, JobCancelled
from .pulse_error import PulseError
from .task import Failure, PayloadRefused, Task, task
from .types import AddOptions, FlowJob, JobSpec, Unique
from .unique import unique_key
from .work import work

# Checkers of types take no other name for a part of a package.
__all__ = [
    "AddOptions", "Failure", "FlowJob", "Job", "JobCancelled", "JobSpec", "JsonText", "NotJson",
    "PayloadRefused", "PulseError", "Task", "Unique", "check_version", "task", "unique_key", "work"]
__all__ += _errors.__all__
__all__ += functions.__all__
