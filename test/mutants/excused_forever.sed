# After more ends by the server than fit, none is anybody's.
# in: extension
# red: e2e whose_session
s/return !was_seen_older;/return true;/
