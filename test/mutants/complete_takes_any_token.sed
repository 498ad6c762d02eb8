# complete() does not test the token.
# in: sql
# red: isolation zombie_heartbeat
/^CREATE.* pulse.complete(/,/^END/ s/ AND j.token = complete.token//
