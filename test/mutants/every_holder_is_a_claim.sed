# Claims go past what a person holds, who tells nobody.
# in: extension
# red: isolation reserved_ranges
s/return ((claim->claim_in_progress.bits >> cursor->bit) & 1) &&$/return true ||/
