# A job survives one worker more than it may.
# in: extension
# red: isolation claim_vs_alone
/^bool is_one_crash_too_many(/,/^}/ s/kJobCrashes) + 1 >=/kJobCrashes) >=/
