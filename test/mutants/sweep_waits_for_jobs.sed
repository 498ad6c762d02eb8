# A recovery, and a plural call, waits for the transaction that holds the row of a job.
# in: extension
# red: isolation sweep_vs_idle_transaction
s/patience == Patience::kWaits ? LockWaitBlock : LockWaitSkip;/LockWaitBlock;/
