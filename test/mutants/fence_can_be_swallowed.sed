# Who swallows PU001 may commit.
# in: extension
# red: isolation fence_vs_sweep
s/^  doomed = true;//
