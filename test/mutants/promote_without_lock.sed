# Two promotions of a queue run side by side.
# in: extension
# red: isolation promote_vs_finish
/^void promote_queue(/,/^}/ s/!try_lock_private(LockKind::kQueue, hash, ExclusiveLock)/hash == 0/
