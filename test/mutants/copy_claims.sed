# A copy hands out jobs.
# in: extension
# red: pgtap installation
s/^  require_adopted();$//
