# fail_many() and release() do not test the token.
# in: sql
# red: isolation zombie_heartbeat
/^CREATE.* pulse._lock_claims(/,/^COMMENT/ s/ AND a.token = j.token//
/^CREATE.* pulse.fail_many(/,/^END/ s/ AND j.token = u.token//
