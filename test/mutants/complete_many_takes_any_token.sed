# complete_many() does not test the token.
# file: extension/finish.cpp
# red: isolation zombie_heartbeat
/^bool is_current(/,/^}/ s/isnull || DatumGetInt64(stored) != token/isnull/
