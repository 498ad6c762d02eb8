# What a task was before a change is remembered as if it was after it.
# in: extension
# red: isolation add_vs_set_task
/^TaskFacts read_latest_facts(/,/^}/ s/GetLatestSnapshot()/GetActiveSnapshot()/
