# A claim of a queue's job makes no entry in the index that counts what the queue has given away.
# in: extension
# red: pgtap change_indexes
s/^  if (has_queue && lane != kLaneParked) /  if (has_queue \&\& lane == kLaneOpen) /
