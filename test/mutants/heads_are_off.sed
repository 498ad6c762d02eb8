# Nobody remembers where the jobs that can be claimed begin.
# in: extension
# red: cost claims
/^HeadFound find_head(/,/^}/s/^  if (!view.bucket) return found;/  return found;/
