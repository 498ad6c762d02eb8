# Claims that walk at the same time take jobs in turns.
# in: extension
# red: isolation stretches
s/^  if (!scan->walk.may_advance) return false;/  return false;/
