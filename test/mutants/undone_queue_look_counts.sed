# What a look at queues saw counts also when what it saw is undone.
# in: extension
# red: isolation queue_scan_vs_rollback
s/if (checks.any && !is_committed && database)/if (false)/
