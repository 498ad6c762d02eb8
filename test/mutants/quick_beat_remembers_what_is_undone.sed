# A look of a transaction that has written is remembered.
# in: extension
# red: isolation quick_heartbeat
s/!TransactionIdIsValid(GetTopTransactionIdIfAny());$/true;/
