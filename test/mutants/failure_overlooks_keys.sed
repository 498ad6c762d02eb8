# A job with a key is put back without a look at who has the key.
# in: extension
# red: isolation keyed_add_vs_fail
s/ || is_set(row, kJobKey) ||$/ ||/
