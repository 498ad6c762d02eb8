# Claims go past a job that a claim's transaction holds without having claimed it.
# in: extension
# red: isolation reserved_ranges
s/^         was_claimed_by(claim, cursor->scan.slot, claim->blocking_xid);/         true;/
