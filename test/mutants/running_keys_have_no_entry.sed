# A claim of a job with a key enters it among those that wait.
# in: extension
# red: pgtap change_indexes
s/^  bool is_held = DatumGetChar(value_of(row, kJobIndexLane)) == kLaneRunning;$/  bool is_held = false;/
