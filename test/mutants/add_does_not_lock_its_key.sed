# Adds of one key do not meet.
# file: sql/add.sql
# red: isolation add_vs_add
/^CREATE.* pulse._add_keyed(/,/^END/ s/PERFORM pulse._lock_key(spec.job_key);//
