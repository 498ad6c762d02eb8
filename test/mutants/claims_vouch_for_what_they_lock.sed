# Claims go past a job that a claim's transaction holds without having claimed it.
# in: extension
# red: isolation stretches
s/^         was_claimed_by(claim, stream->scan.slot, claim->rival);/         true;/
