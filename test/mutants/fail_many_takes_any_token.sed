# fail_many() and release() do not test the token.
# in: extension
# red: isolation zombie_vs_sweep
/^void end_many(/,/^}/ s/{kJobToken, claim.token}/{0, 0}/
