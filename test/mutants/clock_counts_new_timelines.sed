# The time between two primaries counts as silence.
# in: extension
# red: pgtap clock
s/^  if (reading.timeline != current_timeline()) return reading.vt_us;//
