# A failure puts a job back whose cancellation was asked for.
# in: extension
# red: isolation claim_vs_cancel
s/^  if (is_set(row, kJobCancelRequestedAt)) return kCancelled;$//
