# An add that wakes nobody is seen before it is on disk, for nothing.
# in: extension
# red: e2e shared_flush
s/^  prepare_lazy_commit(has_jobs_to_claim());$/  prepare_lazy_commit(true);/
