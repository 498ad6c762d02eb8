# The grace of an ended session begins at the sweep that sees it.
# in: sql
# red: e2e session_end
s/coalesce(pulse._ended_live_us(h.attachment), live_us)/live_us/
