# A job on its last attempt, or of a queue, is prefetched.
# in: extension
# red: pgtap claim
s/return can_start || may_be_prefetched(row)/return true/
