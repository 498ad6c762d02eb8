# claim_job() does not hold the lock of its worker.
# in: sql
# red: isolation claim_vs_declare_lost
s/PERFORM pulse._share_worker(claim_job.worker_id);//
