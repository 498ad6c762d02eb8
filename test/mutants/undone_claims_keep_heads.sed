# What a claim that was undone had passed stays hidden from the claims that follow.
# in: extension
# red: isolation claim_vs_heads
/lower(database, pending.passed_bits/d
