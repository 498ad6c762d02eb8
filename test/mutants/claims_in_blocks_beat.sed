# A claim in a client's block beats, and the worker's heartbeat waits for the end of that block.
# in: extension
# red: isolation idle_heartbeat_vs_sweep
s/^  return interval_us > 0 && !in_client_block() &&$/  return interval_us > 0 \&\&/
