# The end of a job does not mark its queue.
# in: extension
# red: isolation promote_vs_finish
s/^  if (!no_queue) note_queue_slot(slot);$//
