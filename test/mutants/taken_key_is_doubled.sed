# A running job is put back under a key that another one waits under.
# in: extension
# red: isolation keyed_add_vs_fail
s/return is_set(row, kJobKey) && is_key_taken(.*;$/return false;/
