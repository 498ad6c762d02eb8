# claim() runs under any isolation level.
# in: extension
# red: isolation claim_vs_isolation
/^void check_admission(/,/^}/ s/XactIsoLevel != XACT_READ_COMMITTED/false/
