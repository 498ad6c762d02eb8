# An outage counts as silence of everybody.
# file: extension/liveness.cpp
# red: pgtap clock
s/return Min(Max(elapsed, 0), longest_tick_us());/return Max(elapsed, 0);/
