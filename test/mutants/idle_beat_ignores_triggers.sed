# Triggers and constraints on the heartbeat table are none of a beat's business.
# in: extension
# red: isolation idle_heartbeat_vs_sweep
s/is_done = is_plain(table.relation) &&/is_done =/
