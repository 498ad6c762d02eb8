# What an undone claim had set aside stays hidden from the claims that follow.
# in: extension
# red: isolation stretches
/^  note_passed(scan->heads.bit, walk->start.run_at);/d
