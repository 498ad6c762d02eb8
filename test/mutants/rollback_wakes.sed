# A rolled-back enqueue wakes waiters.
# in: extension
# red: isolation add_vs_claim
/if (pending.any/ s/wake_after_abort(database);/wake_after_commit(database);/
