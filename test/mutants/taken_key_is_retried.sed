# A running job whose key was taken is retried.
# file: sql/add.sql
# red: isolation keyed_add_vs_fail
s/job_key = NULL, max_attempts = j.attempts, superseded = true/job_key = NULL/
