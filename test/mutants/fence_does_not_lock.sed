# A fence looks at the row of the job without locking it.
# in: extension
# red: isolation fence_vs_sweep
/^void check_fences(/,/^}/ s/lost_reason(fences\[i\], true)/lost_reason(fences[i], false)/
