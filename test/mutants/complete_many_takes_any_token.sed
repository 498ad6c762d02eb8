# complete_many() does not test the token.
# in: extension
# red: isolation zombie_vs_sweep
/^bool is_current(/,/^}/ s/isnull || DatumGetInt64(stored) != token/isnull/
