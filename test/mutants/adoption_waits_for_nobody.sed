# Somebody who has made a token in an open transaction makes another after an adoption.
# in: extension
# red: isolation claim_vs_adopt
/^PULSE_FUNCTION(pulse_lock_numbers)/,/^}/ s/^  LockRelationOid(pulse::catalog()->token_seq, .*$//
