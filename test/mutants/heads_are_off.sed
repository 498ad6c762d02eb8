# Nobody remembers where the jobs that can be claimed begin.
# in: extension
# red: cost claims
/^bool find_head(/,/^}/s/return found;/return false;/
