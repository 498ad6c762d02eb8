# A promotion that finds the queue busy does not put back its mark.
# in: extension
# red: isolation promote_vs_finish
/^void promote_queue(/,/^}/ s/^    return_queue_mark(slot);//
