# An outage counts as silence of everybody.
# in: extension
# red: isolation outage_vs_sweep
s/Min(Max(elapsed_us(reading, at), 0), longest_tick_us())/Max(elapsed_us(reading, at), 0)/
