# A fence of a rolled-back savepoint stays in force.
# file: extension/fence.cpp
# red: isolation fence_vs_sweep
/^void drop_fences(/,/^}/ s/fences\[i\].savepoint != savepoint/true/
