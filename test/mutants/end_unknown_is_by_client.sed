# A session of whose end nothing is known was ended by its client.
# in: extension
# red: e2e whose_session
s/find_end(MyDatabaseId, attachment, \&end) ? "ended" : "unknown"/find_end(MyDatabaseId, attachment, \&end) ? "ended" : "ended"/
