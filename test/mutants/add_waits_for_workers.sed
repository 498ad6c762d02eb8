# A keyed add waits for whoever holds the running job.
# in: sql
# red: isolation keyed_add_vs_complete
/^CREATE.* pulse._take_key_from_running(/,/^COMMENT/ s/FOR UPDATE SKIP LOCKED/FOR UPDATE/
