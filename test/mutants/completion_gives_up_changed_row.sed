# complete() takes a job for lost whose row changed while it waited.
# in: extension
# red: isolation finish_vs_progress
/^AttemptLock complete_job(/,/^}/ s/^    renew_snapshot(.*;$/    return AttemptLock::kNotRunning;/
