# Claims of many plain jobs move them to the lane of held jobs at once.
# in: extension
# red: cost life
s/^  return max_jobs >= kMinJobs .*/  return max_jobs < 0;/
