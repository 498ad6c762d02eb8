"""The kit that judges workers of pg_pulse. Python's standard library and psql, nothing else."""


def all_scenarios():
    """In the order of the rules."""
    from . import liveness, networks, replies, running, taking_part
    from .kit import SCENARIOS
    assert liveness and networks and replies and running and taking_part
    return sorted(SCENARIOS, key=lambda each: tuple(map(int, each["rule"].split("."))))
