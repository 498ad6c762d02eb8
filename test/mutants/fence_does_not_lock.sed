# A fence looks at the row of the job without locking it.
# file: extension/fence.cpp
# red: isolation fence_vs_sweep
/^void check_fences(/,/^}/ s/loss(fences\[i\], true)/loss(fences[i], false)/
