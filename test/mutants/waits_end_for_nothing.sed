# A wait ends for each job that was added since the claim, whichever waiter was woken for it.
# in: extension
# red: isolation add_vs_wait
/^  if (sample.group_slot)$/,/wake_group_generation;$/d
