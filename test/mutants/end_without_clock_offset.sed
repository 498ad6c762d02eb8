# A session's end is noted without its own clock.
# in: extension
# red: e2e session_end
s/{held\[i\], now, clock_offset_us()}/{held[i], now, 0}/
