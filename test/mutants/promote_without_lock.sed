# Two promotions of a queue run side by side.
# in: extension
# red: isolation promote_vs_finish
/^void promote_queue(/,/^}/ s/!try_advisory_lock(LockKind::kQueue, hash, ExclusiveLock)/hash == 0/
