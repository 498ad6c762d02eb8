# Deletion by age waits for whoever holds a row.
# in: sql
# red: isolation prune_vs_prune
/^CREATE.* pulse._prune_failed(/,/^COMMENT/ s/FOR UPDATE SKIP LOCKED/FOR UPDATE/
