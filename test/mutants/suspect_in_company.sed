# A suspect is given to a worker that holds others.
# in: extension
# red: isolation claim_vs_alone
/^bool is_alone(/,/^}/ s/!holds_jobs(/holds_jobs(/
