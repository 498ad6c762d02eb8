# A sweep that recovers lost and late jobs sends two notifications.
# in: sql
# red: isolation sweep_vs_listen
s/^  IF is_first THEN/  IF true THEN/
