# Claims in place stay on the claim index for as long as they run.
# in: sql
# red: pgtap in_place_claim
s| := pulse._index_running(worker_id);| := true;|
