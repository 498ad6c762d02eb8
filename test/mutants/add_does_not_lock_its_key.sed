# Adds of one key do not meet.
# in: sql
# red: isolation add_vs_add
/^CREATE.* pulse._add_keyed(/,/^END/ s/PERFORM pulse._lock_key(spec.job_key);//
