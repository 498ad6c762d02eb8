# A claim of one given job does not count.
# in: extension
# red: isolation quick_heartbeat
s/^  pulse::begin_claim(PG_GETARG_INT64(0));$/  pulse::advisory_lock(pulse::LockKind::kWorker, PG_GETARG_INT64(0), ShareLock);/
