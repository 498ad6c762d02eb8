"""The fixtures of pytest: `pulse` runs jobs in a transaction that is rolled back."""
import pytest


@pytest.fixture
def pulse_connection():
    """The connection of `pulse`; a test that defines a fixture of this name gives its own."""
    import psycopg
    with psycopg.connect() as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def pulse(pulse_connection):
    """pulse.db is the connection, pulse.run_jobs(tasks) runs due jobs, pulse.travel("1 hour") moves
    time."""
    from .testing import Trial
    # BEGIN of the code under test is a savepoint, and COMMIT is refused.
    with pulse_connection.transaction(force_rollback=True):
        yield Trial(pulse_connection)
