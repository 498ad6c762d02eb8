# To drain takes back the order to stop.
# in: sql
# red: pgtap worker_control
s/CASE WHEN h.verdict = 'stopping' THEN h.verdict ELSE _order_worker.wanted END/_order_worker.wanted/
