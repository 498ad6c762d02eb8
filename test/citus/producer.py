"""A producer of a cluster: transactions that add rows and jobs of one or two keys each.

usage: producer.py DSN FIRST COUNT KEY...
Each row and its job have one number, from FIRST on. A third of the transactions is rolled back, and
a third of the others rolls back to a savepoint. A session that is lost is opened anew. Says
`committed N`, `unknown N` where the answer to COMMIT was lost, and `done` after COUNT answers.
"""
import random
import sys
import time

import psycopg

dsn, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
keys = sys.argv[4:]
chance = random.Random(first)


def add(session, key, number):
    steps = [
        lambda: session.execute("INSERT INTO orders VALUES (%s, %s, 'ledger')", (key, number)),
        lambda: session.execute(
            "SELECT pulse_citus.add_job(%s, 'ledger', %s::json)",
            (key, f'{{"row": {number}, "key": "{key}"}}'),
        ),
    ]
    chance.shuffle(steps)
    for step in steps:
        step()


def transact(session, number):
    session.execute("BEGIN")
    for place, key in enumerate(chance.sample(keys, chance.choice([1, 2]))):
        add(session, key, number + place)
    if chance.random() < 1 / 3:
        session.execute("SAVEPOINT s")
        add(session, chance.choice(keys), number + 2)
        session.execute("ROLLBACK TO s")
    if chance.random() < 1 / 3:
        session.execute("ROLLBACK")
        return None
    return "COMMIT"


session = None
number = first
answered = 0
while answered < count:
    number += 4
    end = None
    try:
        if session is None or session.closed:
            session = psycopg.connect(dsn, autocommit=True)
        end = transact(session, number)
        if end:
            session.execute(end)
            print(f"committed {number}", flush=True)
        answered += 1
    except psycopg.Error:
        if end:
            print(f"unknown {number}", flush=True)
        try:
            session.execute("ROLLBACK")
        except (psycopg.Error, AttributeError):
            session = None
            time.sleep(0.1)
print("done", flush=True)
