# claim() does not hold the lock of its worker.
# in: extension
# red: isolation claim_vs_declare_lost
/^void admit_worker(/,/^}/ s/^  advisory_lock(LockKind::kWorker, .*ShareLock);$//
