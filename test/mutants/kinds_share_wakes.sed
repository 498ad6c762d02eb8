# A worker of one kind is woken, and those of another that are about to wait are not told.
# in: extension
# red: isolation add_vs_wait
/^bool is_met(/,/^}/s/offer->demands\[i\].wake_group == wake_group/wake_group != 0/
