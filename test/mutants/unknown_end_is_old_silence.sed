# A worker without heartbeats was silent all the time that its session stood for it.
# in: sql
# red: e2e whose_session
s/THEN greatest(live_us, h.beat_live_us) ELSE h.beat_live_us END/THEN h.beat_live_us ELSE h.beat_live_us END/
