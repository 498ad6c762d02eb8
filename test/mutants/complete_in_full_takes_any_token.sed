# complete() does not test the token where it does more than a delete.
# in: sql
# red: isolation zombie_vs_sweep
/^CREATE.* pulse._complete_in_full(/,/^END/ s/ AND j.token = _complete_in_full.token//
