"""The one way in which the kit waits: for a condition, until a deadline."""
import time

STEP = 0.03  # seconds between two readings of a condition


def wait_until(condition, seconds):
    """The condition's value once it is true; else its last value at the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(STEP)
