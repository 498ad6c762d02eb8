# A promotion opens one job too many.
# in: extension
# red: isolation promote_vs_finish
/^void read_settings(/,/^}/ s/queue->concurrency = 1;/queue->concurrency = 2;/
