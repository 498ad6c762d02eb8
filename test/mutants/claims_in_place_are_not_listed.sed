# Nobody finds what a lost worker had claimed in place.
# in: extension
# red: pgtap in_place_claim
/^void add_claim_batches/,/^}/s/if (count == 0) return;/return;/
