# A claim that is newer than the last array goes back with it.
# in: sql
# red: isolation heartbeat_vs_claim
s/FROM unnest(beat.missing_job_ids, beat.missing_tokens) AS m/FROM unnest(ids, tokens) AS m/
