# add_jobs() locks keys in the order of the array.
# in: sql
# red: isolation add_vs_add
s/PERFORM pulse._lock_keys((SELECT array_agg(DISTINCT s.job_key) FROM unnest(specs) AS s));//
