# A released savepoint takes its fence with it.
# in: extension
# red: isolation fence_vs_sweep
/SUBXACT_EVENT_COMMIT_SUB/ s/hand_up_fences(mine, parent);/drop_fences(mine);/
