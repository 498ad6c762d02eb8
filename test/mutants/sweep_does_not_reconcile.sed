# A sweep looks only at marked queues.
# in: sql
# red: isolation prepare_vs_sweep
/^CREATE.* pulse._sweep(/,/^END/ s/THEN 0 ELSE 1000 END);/THEN NULL::int ELSE NULL::int END);/
