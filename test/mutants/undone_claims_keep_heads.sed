# What a claim that was undone had passed stays hidden from the claims that follow.
# in: extension
# red: isolation claim_vs_heads
/lower_heads_to(gone_past())/d
