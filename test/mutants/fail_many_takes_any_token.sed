# fail_many() and release() do not test the token.
# in: sql
# red: isolation zombie_vs_sweep
/^CREATE.* pulse._lock_claims(/,/^COMMENT/ s/ AND a.token = j.token//
/^CREATE.* pulse._fail_many_in_full(/,/^END/ s/ AND j.token = u.token//
