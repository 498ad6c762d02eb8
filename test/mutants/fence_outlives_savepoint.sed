# A fence of a rolled-back savepoint stays in force.
# in: extension
# red: isolation fence_vs_sweep
/^void drop_fences(/,/^}/ s/fences\[i\].savepoint != savepoint/true/
