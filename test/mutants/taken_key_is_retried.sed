# A running job whose key was taken is retried.
# in: sql
# red: isolation keyed_add_vs_fail
s/job_key = NULL, max_attempts = j.attempts, superseded = true/job_key = NULL/
