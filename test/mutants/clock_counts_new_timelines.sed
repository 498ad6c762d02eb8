# The time between two primaries counts as silence.
# file: extension/liveness.cpp
# red: pgtap clock
s/^  if (reading.timeline != current_timeline()) return 0;//
