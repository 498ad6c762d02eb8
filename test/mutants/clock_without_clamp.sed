# An outage counts as silence of everybody.
# in: extension
# red: isolation outage_vs_sweep
s/return Min(Max(elapsed_us(reading), 0), longest_tick_us());/return Max(elapsed_us(reading), 0);/
