# A claim does not count: beats go on without a look.
# in: extension
# red: isolation quick_heartbeat
s/^  if (counts) pg_atomic_fetch_add_u64.*$//
