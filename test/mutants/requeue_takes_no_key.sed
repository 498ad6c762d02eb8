# requeue_job does not lock the key of the job that it puts back.
# in: sql
# red: isolation requeue_vs_finish
/PERFORM pulse._lock_key((SELECT j.job_key/d
