# What an undone claim had set aside stays hidden from the claims that follow.
# in: extension
# red: isolation reserved_ranges
/^  note_passed(scan->marks.bit, walk->start.run_at);/d
