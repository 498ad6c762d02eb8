# A promotion opens one job too many.
# file: extension/promote.cpp
# red: isolation promote_vs_finish
/^void read_settings(/,/^}/ s/queue->concurrency = 1;/queue->concurrency = 2;/
