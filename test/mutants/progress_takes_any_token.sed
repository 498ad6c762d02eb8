# progress() does not test the token.
# file: sql/progress.sql
# red: isolation zombie_heartbeat
s/ AND j.token = progress.token//
