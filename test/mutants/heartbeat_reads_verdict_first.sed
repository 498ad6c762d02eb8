# A heartbeat reads the verdict in a statement before the one that beats.
# in: sql
# red: isolation heartbeat_vs_sweep
/^  UPDATE pulse.heartbeat AS h SET$/ i\
  status := (SELECT h.status FROM pulse.heartbeat AS h WHERE h.worker_id = _heartbeat_in_full.worker_id);
s/^  status := coalesce(beat.status, 'lost');/  status := coalesce(status, 'lost');/
