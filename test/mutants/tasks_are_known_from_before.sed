# What a task was before a change is remembered as if it was after it.
# in: extension
# red: isolation add_vs_set_task
/^int read_latest_max_attempts(/,/^}/ s/GetLatestSnapshot()/GetActiveSnapshot()/
