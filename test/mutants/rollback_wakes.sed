# A rolled-back enqueue wakes waiters.
# in: extension
# red: isolation add_vs_claim
/if (pending.any/ s/tell_abort(database);/tell_commit(database);/
