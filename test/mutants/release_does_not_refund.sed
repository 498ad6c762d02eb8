# release() consumes the attempt.
# in: extension
# red: isolation release_vs_sweep
/^bool gives_attempt_back(/,/^}/ s/return .*;/return ending.kind == Ending::kSnoozed;/
