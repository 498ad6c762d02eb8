# A recovery does not lock the key of the job.
# in: sql
# red: isolation keyed_add_vs_fail
/^CREATE.* pulse._lock_running(/,/^COMMENT/ s/ OR pulse._try_lock_key(..job_key)/ OR true/
