# A job on its last attempt, or of a queue, is prefetched.
# file: extension/claim.cpp
# red: pgtap claim
s/ \&\& !may_be_prefetched(row)) return;/ \&\& false) return;/
