# A beat from elsewhere after the end of a session is where its grace begins.
# in: sql
# red: e2e session_end
s/>= h.beat_live_us THEN locked.ended_live_us/IS NOT NULL THEN greatest(locked.ended_live_us, h.beat_live_us)/
