# claim() waits for whoever holds the row of a job.
# in: extension
# red: isolation claim_vs_claim
/^bool try_lock_row(/,/^}/ s/LockWaitSkip/LockWaitBlock/
