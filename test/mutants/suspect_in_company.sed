# A suspect is given to a worker that holds others.
# in: extension
# red: isolation claim_vs_alone
/^bool is_idle(/,/^}/ s/!has_running_jobs(/has_running_jobs(/
