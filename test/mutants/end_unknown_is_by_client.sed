# A session of whose end nothing is known was ended by its client.
# in: extension
# red: e2e whose_session
s/return has_lost_timed && !has_lost_excused && !is_excused(ended, attachment);/return !is_excused(ended, attachment);/
