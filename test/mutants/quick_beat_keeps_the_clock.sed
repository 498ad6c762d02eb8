# What was read of the clock holds for ever.
# in: extension
# red: isolation quick_heartbeat
s/elapsed <= longest_tick_us() &&/true \&\&/
