# A beat of a worker that holds nothing does not look whether its row is still the last one.
# in: extension
# red: isolation idle_heartbeat_vs_sweep
s/buffer) == TM_Ok;/buffer) != TM_Deleted;/
