# The sweep waits for whoever holds the heartbeat of a worker.
# in: sql
# red: isolation sweep_vs_sweep
/^CREATE.* pulse._mark_all_lost(/,/^END/ s/FOR UPDATE SKIP LOCKED/FOR UPDATE/
