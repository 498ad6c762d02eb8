# A recovery gives the attempt back.
# in: extension
# red: isolation complete_vs_sweep
/^bool gives_attempt_back(/,/^}/ s/return .*;/return ending.kind != Ending::kOther;/
