# A failure puts a cancelled job back.
# in: sql
# red: isolation claim_vs_cancel
s/WHEN j.cancel_requested_at IS NOT NULL THEN 'cancelled'/WHEN false THEN 'cancelled'/
