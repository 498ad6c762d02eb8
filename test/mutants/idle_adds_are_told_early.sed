# An add that wakes nobody is seen before it is on disk, for nothing.
# in: extension
# red: e2e shared_flush
s/^  prepare_async_commit(has_jobs_to_claim());$/  prepare_async_commit(true);/
