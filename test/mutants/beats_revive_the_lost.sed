# A beat does not ask whether its worker has ended.
# in: extension
# red: isolation idle_heartbeat_vs_sweep
s/^  bool is_living = is_locked && lives(beats->locked);$/  bool is_living = is_locked;/
