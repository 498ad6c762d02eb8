# claim() waits for whoever holds the row of a job.
# file: extension/job_table.cpp
# red: isolation claim_vs_claim
s/LockWaitSkip/LockWaitBlock/
