# A job that somebody else took out of a stretch stays hidden from the claims that follow.
# in: extension
# red: isolation reserved_ranges
/^  return_to_mark(scan->marks, priority, key);/d
