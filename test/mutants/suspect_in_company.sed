# A suspect is given to a worker that holds others.
# in: extension
# red: isolation claim_vs_alone
/^void consider_poison_suspect(/,/^}/ s/!holds_jobs(/holds_jobs(/
