# The sweep declares a worker lost while a claim of it is under way.
# in: sql
# red: isolation claim_vs_sweep
/^CREATE.* pulse._mark_all_lost(/,/^END/ s/ OR NOT pulse._try_lock_worker(candidate)//
