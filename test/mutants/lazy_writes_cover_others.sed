# What else was written beside a beat or a sweep is not flushed either.
# in: extension
# red: cost flushes
s/^  if (!writes.any || !writes.nothing_else || XactLastRecEnd != writes.end) return;$/  if (!writes.any) return;/
