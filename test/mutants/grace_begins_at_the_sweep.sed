# The grace of an ended session begins at the sweep that sees it.
# in: sql
# red: e2e session_end
s/THEN locked.ended_live_us$/THEN live_us/
