# Ends by the server that no longer fit are taken for their clients'.
# in: extension
# red: e2e whose_session
s/return !was_seen_older;/return false;/
