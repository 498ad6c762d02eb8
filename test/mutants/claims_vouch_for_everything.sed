# Claims go past what a claim holds in front of where it began.
# in: extension
# red: isolation reserved_ranges
s/cursor->scan.run_at >= claim->claim_in_progress.from/true/
