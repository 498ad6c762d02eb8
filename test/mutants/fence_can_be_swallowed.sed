# Who swallows PU001 may commit.
# file: extension/fence.cpp
# red: isolation fence_vs_sweep
s/^  doomed = true;//
