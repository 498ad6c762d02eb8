# A session of whose end nothing is known was ended by its client.
# in: extension
# red: e2e whose_session
s/find_own_end(attachment, \&end) ? "ended" : "unknown"/find_own_end(attachment, \&end) ? "ended" : "ended"/
