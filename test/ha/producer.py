"""A producer outside of the database: adds a job each 200 ms, and says which adds were answered.

usage: producer.py NAME DSN
Says `added ID NAME/N SECONDS` of each job whose commit the server has answered, and `cut` with an
SQLSTATE when a session is lost. After SIGUSR1 it says `stopped`.
"""
import signal
import sys
import time

import psycopg

name, dsn = sys.argv[1:]
goes_on = True


def stop(*_):
    global goes_on
    goes_on = False


signal.signal(signal.SIGUSR1, stop)
number = 0
session = None
while goes_on:
    number += 1
    payload = f'{{"what": "{name}/{number}"}}'
    try:
        if session is None or session.closed:
            session = psycopg.connect(dsn, autocommit=True)
        row = session.execute("SELECT id FROM pulse.add_job('journal', %s::json)", (payload,))
        print(f"added {row.fetchone()[0]} {name}/{number} {time.time():.3f}", flush=True)
    except psycopg.Error as error:
        # An add without an answer may have been committed: it is in no ledger.
        print(f"cut {time.time():.3f} {error.sqlstate}", flush=True)
        if session is not None:
            session.close()
        session = None
    time.sleep(0.2)
print("stopped", flush=True)
