# release() consumes the attempt.
# in: extension
# red: isolation release_vs_sweep
s/int given_back = ending.kind == Ending::kReleased;/int given_back = 0;/
