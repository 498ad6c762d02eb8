# An add of which others were told first is answered before it is on disk.
# in: extension
# red: e2e shared_flush
s/^  if (is_flush_due) flush_told_commit(is_woken);$/  (void)is_flush_due, (void)is_woken;/
