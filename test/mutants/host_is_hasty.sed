# A worker of another namespace is lost as soon as its session ends.
# in: sql
# red: pgtap host_check
s/ THEN live_us - beat.beat_live_us > beat.interval_us/ THEN true/
