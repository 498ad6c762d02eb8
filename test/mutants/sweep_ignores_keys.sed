# A recovery, and a plural call, does not lock the key of the job.
# in: extension
# red: isolation keyed_add_vs_fail
s/return !key || try_lock_key(key);/return true;/
