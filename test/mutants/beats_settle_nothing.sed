# Claims in place stay on the claim index for as long as they run.
# in: sql
# red: pgtap fresh_claim
s/done := pulse._settle_claims(beat.worker_id);//
