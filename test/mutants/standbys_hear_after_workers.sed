# Workers are told of an add before the standby that every commit waits for.
# in: extension
# red: e2e shared_flush
s/^  return !SyncRepStandbyNames || .*;$/  return true;/
