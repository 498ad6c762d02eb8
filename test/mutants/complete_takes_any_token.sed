# complete() does not test the token.
# file: sql/finish.sql
# red: isolation zombie_heartbeat
/^CREATE.* pulse.complete(/,/^END/ s/ AND j.token = complete.token//
