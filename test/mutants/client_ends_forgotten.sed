# More ends by clients than are remembered are nobody's.
# in: extension
# red: e2e whose_session
s/return has_lost_timed && !has_lost_excused && !is_excused(ended, attachment);/return false;/
