# claim_job() does not hold the lock of its worker.
# in: sql
# red: isolation claim_vs_declare_lost
s/PERFORM pulse._lock_worker_shared(claim_job.worker_id);//
