#!/usr/bin/env python3
# Lives exactly as long as its session: it needs no beats, and its end is noticed at once. When the
# server goes, it ends with the error; its supervisor starts it anew.
import contextlib, hashlib, pathlib, psycopg, signal

signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C: ends a wait, or a job
db = psycopg.connect(autocommit=True)
[me, _] = db.execute("""SELECT id, pulse.attach_worker(id) FROM pulse.register_worker(
    'session worker', '{checksum}', heartbeat_interval => '0')""").fetchone()
with contextlib.suppress(KeyboardInterrupt):
    # Asks whether to go on, and says that it holds no job: what a lost reply claimed goes back.
    while "alive" in db.execute("SELECT status FROM pulse.heartbeat(%s, '{}')", [me]).fetchone():
        claim = db.execute("SELECT id, token, payload FROM pulse.claim(%s)", [me])
        for job, token, payload in claim:
            try:
                digest = hashlib.sha256(pathlib.Path(payload["path"]).read_bytes()).hexdigest()
                with db.transaction():  # both or neither
                    db.execute("INSERT INTO checksum VALUES (%s, %s)", [job, digest])
                    db.execute("SELECT pulse.complete(%s, %s)", [job, token])
            except Exception as error:  # PU001 too: the claim is lost, and this is only "stale"
                db.execute("SELECT pulse.fail_many(ARRAY[%s], ARRAY[%s], ARRAY[%s])",
                           [job, token, repr(error)])
        db.execute("CALL pulse.wait_for_job(%s, '2 s')", [me])
        db.execute("SELECT pulse.sweep()")
db.execute("SELECT pulse.deregister_worker(%s)", [me])  # what it was at goes back at once
