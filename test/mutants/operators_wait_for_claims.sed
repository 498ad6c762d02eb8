# complete_jobs and its like wait for rows that claims hold.
# in: sql
# red: isolation operators_vs_claim
s/^             FOR UPDATE SKIP LOCKED) AS f;/             FOR UPDATE) AS f;/
