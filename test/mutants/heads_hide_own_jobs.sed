# A transaction's own jobs lie behind the place where its claims begin.
# in: extension
# red: isolation claim_vs_low_water_mark
s/^  if (view.own_run_at <= found.key.run_at) .*/  (void)view.own_run_at;/
