# What a claim that was undone had passed stays hidden from the claims that follow.
# in: extension
# red: isolation claim_vs_low_water_mark
/lower_marks_to(gone_past())/d
