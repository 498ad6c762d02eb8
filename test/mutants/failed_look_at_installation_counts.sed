# A look at the installation that fails counts.
# in: extension
# red: isolation copy_vs_lock
/^  cached = reading;$/s/$/ cached.valid = true;/
