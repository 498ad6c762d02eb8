# A recovery gives the attempt back.
# in: extension
# red: isolation complete_vs_sweep
s/int given_back = ending.kind == Ending::kReleased;/int given_back = ending.kind != Ending::kOther;/
