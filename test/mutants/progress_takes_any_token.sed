# progress() does not test the token.
# in: sql
# red: isolation zombie_heartbeat
s/ AND j.token = progress.token//
