# A worker that holds nothing is alive, whatever its heartbeat row says.
# in: extension
# red: isolation idle_heartbeat_vs_sweep
s/return status_is(beat, "alive") && is_null(beat, kBeatMissingJobIds)/return is_null(beat, kBeatMissingJobIds)/
