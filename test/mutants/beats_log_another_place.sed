# A beat is logged as if it had been eight bytes further on.
# in: extension
# red: e2e lagging_standby
/Fragment fragment =/ s/from - /from + 8 - /
