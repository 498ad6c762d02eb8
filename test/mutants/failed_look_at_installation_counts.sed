# A look at the installation that fails counts.
# in: extension
# red: isolation copy_vs_lock
/^  known = reading;$/s/$/ known.valid = true;/
