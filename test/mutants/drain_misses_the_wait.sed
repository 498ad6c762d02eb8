# An order does not reach a worker on the way from its claim to its wait.
# in: extension
# red: isolation worker_control_vs_claim
s/ || pending.workers > 0)/)/
