# A heartbeat reads the verdict in the version that it saw before it had the row.
# in: extension
# red: isolation idle_heartbeat_vs_sweep
s/^  bool is_living = is_locked && lives(beats->locked);$/  bool is_living = is_locked \&\& lives(rows.row);/
