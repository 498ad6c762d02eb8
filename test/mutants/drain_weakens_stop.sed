# To drain takes back the order to stop.
# in: sql
# red: pgtap steer
s/CASE WHEN h.verdict = 'stopping' THEN h.verdict ELSE _order_worker.verdict END/_order_worker.verdict/
