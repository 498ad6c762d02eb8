# A claim that is newer than the last array goes back with it.
# in: sql
# red: isolation heartbeat_vs_claim
s/pulse._lock_claims(beat.missing_job_ids, beat.missing_tokens)/pulse._lock_claims(ids, tokens)/
