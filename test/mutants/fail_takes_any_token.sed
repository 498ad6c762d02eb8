# fail() and snooze() do not test the token.
# in: extension
# red: isolation zombie_vs_sweep
/^const char\* end_one(/,/^}/ s/{kJobToken, DatumGetInt64(token.value)}/{0, 0}/
