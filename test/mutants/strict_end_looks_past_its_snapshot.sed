# An end in a REPEATABLE READ transaction goes by what came after its snapshot.
# in: extension
# red: isolation finish_vs_progress
s/open(jobs, IsolationUsesXactSnapshot());/open(jobs, false);/
