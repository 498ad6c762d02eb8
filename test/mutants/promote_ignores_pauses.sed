# A promotion opens jobs of a paused queue.
# in: extension
# red: isolation claim_vs_pause
/^void read_settings(/,/^}/ s/queue->paused = DatumGetBool.*$/queue->paused = false;/
