# A failure puts a cancelled job back.
# file: sql/finish.sql
# red: isolation claim_vs_cancel
s/WHEN j.cancel_requested_at IS NOT NULL THEN 'cancelled'/WHEN false THEN 'cancelled'/
