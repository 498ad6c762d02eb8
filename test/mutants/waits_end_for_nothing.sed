# A wait ends for each job that was added since the claim, whoever was woken for it.
# in: extension
# red: isolation add_vs_wait
/^  if (sample.group_slot)$/,/generation;$/d
