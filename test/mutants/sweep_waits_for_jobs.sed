# A recovery waits for whoever holds a row of a job.
# in: sql
# red: isolation sweep_vs_idle_transaction
/^CREATE.* pulse._lock_running(/,/^COMMENT/ s/FOR UPDATE SKIP LOCKED/FOR UPDATE/
