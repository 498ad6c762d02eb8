# A job survives one worker more than it may.
# file: sql/finish.sql
# red: isolation claim_vs_alone
s/AND j.crashes + 1 >= coalesce/AND j.crashes >= coalesce/
