# A fence looks at the row of the job without locking it.
# in: extension
# red: isolation fence_vs_sweep
/^void check_fences(/,/^}/ s/loss(fences\[i\], true)/loss(fences[i], false)/
