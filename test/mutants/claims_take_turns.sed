# Claims that walk at the same time take jobs in turns.
# in: extension
# red: isolation reserved_ranges
s/^  if (!scan->walk.can_reserve) return false;/  return false;/
