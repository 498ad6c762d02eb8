# A job on its last attempt, or of a queue, is prefetched.
# in: extension
# red: pgtap claim
s/ \&\& !may_be_prefetched(row)) return false;/ \&\& false) return false;/
