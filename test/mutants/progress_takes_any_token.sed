# progress() does not test the token.
# in: sql
# red: isolation zombie_vs_sweep
s/ AND j.token = progress.token//
