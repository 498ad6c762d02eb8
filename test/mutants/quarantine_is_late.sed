# A job survives one worker more than it may.
# in: sql
# red: isolation claim_vs_alone
s/BETWEEN 0 AND j.crashes + 1 THEN/BETWEEN 0 AND j.crashes THEN/
