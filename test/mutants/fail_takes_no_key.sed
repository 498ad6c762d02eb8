# fail() and snooze() do not wait for the key of the job that they put back.
# in: extension
# red: isolation keyed_add_vs_fail
s/^  if (waits) wait_for_key(jobs, job_id, of);$//
