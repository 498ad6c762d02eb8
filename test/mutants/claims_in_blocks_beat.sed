# A claim in a client's block beats, which stays when the block is rolled back.
# in: extension
# red: isolation idle_heartbeat_vs_sweep
s/^  if (interval == 0 || in_client_block()) return false;$/  if (interval == 0) return false;/
