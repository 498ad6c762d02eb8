# A running job is put back under a key that another one waits under.
# in: sql
# red: isolation keyed_add_vs_fail
s/WHEN j.superseded OR j.job_key IS NOT NULL AND pulse._is_taken(j.job_key) THEN/WHEN j.superseded THEN/
