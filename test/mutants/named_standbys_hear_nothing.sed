# A standby that was named in the middle of a statement is not waited for.
# in: extension
# red: e2e shared_flush
s/^  SyncRepWaitForLSN(end, true);$//
