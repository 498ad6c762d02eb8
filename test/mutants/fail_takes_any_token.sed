# fail() and snooze() do not test the token.
# in: sql
# red: isolation zombie_vs_sweep
/^CREATE.* pulse._lock_claim(/,/^END/ s/ AND j.token = _lock_claim.token//
