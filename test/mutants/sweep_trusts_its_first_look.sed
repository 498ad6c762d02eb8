# The sweep does not judge the beat again on the locked row.
# in: sql
# red: isolation heartbeat_vs_sweep
/^CREATE.* pulse._mark_all_lost(/,/^END/ s/AND cause IS NULL THEN/AND false THEN/
/^CREATE.* pulse._mark_all_lost(/,/^END/ s/cause := pulse._lost_way(.*;/cause := 'silence';/
