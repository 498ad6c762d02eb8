# Who takes a job that fell due does not tell others when the next one does.
# in: extension
# red: e2e woken
s/^  if (lowered) signal_timer_owners(lowered);$//
