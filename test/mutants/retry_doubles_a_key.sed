# A retried job does not lock its key against keyed adds.
# in: sql
# red: isolation retry_vs_keyed_add
/PERFORM pulse._lock_key((SELECT f.job_key/,/;/d
