# Nobody finds what a lost worker had claimed in place.
# in: extension
# red: pgtap fresh_claim
/^void list_fresh_claims/,/^}/s/if (count == 0) return;/return;/
