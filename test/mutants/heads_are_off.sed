# Nobody remembers where the jobs that can be claimed begin.
# in: extension
# red: cost claims
/^FoundMark find_mark(/,/^}/s/^  if (!view.bucket) return found;/  return found;/
