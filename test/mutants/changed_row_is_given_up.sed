# fail() and its like take a job for lost whose row changed while they waited.
# in: extension
# red: isolation finish_vs_progress
/^AttemptLock lock_attempt(/,/^}/ s/^    renew_snapshot(jobs);$/    return AttemptLock::kNotRunning;/
