# A look does not ask whether a claim is open, which may end later.
# in: extension
# red: isolation quick_heartbeat
s/ && claims_have_ended(worker_id)//
