# A claim of one given job does not count.
# in: extension
# red: isolation quick_heartbeat
s/^  pulse::count_claim(PG_GETARG_INT64(0));$//
