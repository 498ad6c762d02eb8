"""A session of the direct mode: opened when first asked, and anew when the connection breaks."""
import asyncio
import contextlib
import os
import random
import socket

import psycopg

from ..errors import sqlstate, translate

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5  # seconds
_CONNECT_SECONDS = 10
# What the first statements of a session take at most.
_SETTLE_SECONDS = 30
# Whatever the defaults of the database are.
_SETTINGS = """SET default_transaction_isolation = 'read committed';
    SET default_transaction_read_only = off; SET statement_timeout = 0; SET lock_timeout = 0;
    SET idle_session_timeout = 0; SET idle_in_transaction_session_timeout = 0;
    SET jit = off; SET max_parallel_workers_per_gather = 0"""

# As pulse-worker has it: faults of connections, locks, memory, disks and a server that starts,
# stops or is a standby pass by themselves.
_PASSING = ("08", "25", "40", "53", "55", "57", "58")
_READ_ONLY = "25006"


def is_cut(error):
    """Whether the call may have been carried out, or not: the connection is gone."""
    code = getattr(error, "sqlstate", None)
    return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)) and (
        code is None or code.startswith(("08", "57P")))


def is_passing(error):
    """Whether the server may take the same call later."""
    return is_cut(error) or (sqlstate(error)[0] or "").startswith(_PASSING)


def _cut(connection):
    # The statement that waits fails, as where the server is gone. A statement that is cancelled
    # waits, in newer versions of psycopg, for the server once more.
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as end:
        end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def _cut_after(seconds, connection):
    """Cuts what has no answer in so many seconds; without a number waits."""
    timer = seconds and asyncio.get_running_loop().call_later(seconds, _cut, connection)
    try:
        yield
    finally:
        if timer:
            timer.cancel()


class Session:
    """`answered`: is told of each answer, and, with the error, of each lost connection and of each
    call that is asked again."""

    def __init__(self, connection, notice, answered=lambda *_: None, prepare=None):
        self._conninfo, self._notice, self._prepare = connection, notice, prepare
        self._answered = answered
        self._connection, self._asks_once = None, False
        self._opening = asyncio.Lock()

    async def _open(self):
        connection = await psycopg.AsyncConnection.connect(
            self._conninfo, autocommit=True, fallback_application_name="pg-pulse",
            connect_timeout=_CONNECT_SECONDS)
        try:
            connection.add_notice_handler(self._notice)
            with _cut_after(_SETTLE_SECONDS, connection):
                await connection.execute(_SETTINGS)
                if self._prepare:
                    await self._prepare(connection.execute)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _opened(self):
        async with self._opening:
            if self._connection is None or self._connection.closed:
                self._connection = await self._open()
            return self._connection

    @property
    def pid(self):
        """The server process of this session."""
        return self._connection.info.backend_pid

    async def check(self):
        """Raises where a pooler stands between: the end of the session must tell of the end of the
        worker."""
        [(pid,)] = await self.query("SELECT pg_backend_pid()")
        if pid != self.pid:
            raise RuntimeError(
                "a pooler stands between this worker and the server: give the worker a direct "
                "connection, or run the program under pulse-worker --program")

    async def query(self, text, values=None, within=None):
        """The rows, or the error, of one try. An answer must come within so many seconds."""
        connection = None
        try:
            connection = await self._opened()
            with _cut_after(within, connection):
                cursor = await connection.execute(text, values)
                rows = await cursor.fetchall() if cursor.description else []
            self._answered(self)
            return rows
        except Exception as error:
            if is_cut(error):
                self._answered(self, error)
            # Behind the address of a standby may be a primary by now.
            if connection and (is_cut(error) or sqlstate(error)[0] == _READ_ONLY):
                await connection.close()
            if found := translate(error):
                raise found from error
            raise

    async def ask(self, text, values, within, repeats=is_cut):
        """Asks until an answer comes, or an error that is none of `repeats`, for calls that may be
        repeated."""
        delay = _FIRST_PAUSE
        while True:
            try:
                return await self.query(text, values, within)
            except Exception as error:
                if not repeats(error) or self._asks_once:
                    raise
                self._answered(self, error)
            await asyncio.sleep(delay * random.uniform(0.5, 1.5))
            delay = min(2 * delay, _LONGEST_PAUSE)

    def ask_once(self):
        """From now on."""
        self._asks_once = True

    def cut(self):
        """A statement that waits for its answer fails."""
        self.ask_once()
        if self._connection and not self._connection.closed:
            _cut(self._connection)

    async def end(self):
        if self._connection:
            await self._connection.close()

    def in_child(self):
        """In a process that a handler has forked: the session ends with its own process."""
        if self._connection and not self._connection.closed:
            os.close(self._connection.fileno())
