# A job that somebody else took out of a stretch stays hidden from the claims that follow.
# in: extension
# red: isolation stretches
/^  give_back(scan->heads, priority, key);/d
