# A session's end is noted without its own clock.
# in: extension
# red: e2e session_end
s/held\[i\].number, now, clock_offset_us()}/held[i].number, now, 0}/
