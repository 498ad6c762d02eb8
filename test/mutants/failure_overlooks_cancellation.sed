# A failure puts a job back whose cancellation was asked for.
# in: extension
# red: isolation claim_vs_cancel
s/is_set(row, kJobCancelRequestedAt) || //
