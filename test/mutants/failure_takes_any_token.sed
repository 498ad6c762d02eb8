# fail(), fail_many() and release() do not test the token.
# in: extension
# red: isolation zombie_vs_sweep
s/return of.column == 0 ||$/return true ||/
