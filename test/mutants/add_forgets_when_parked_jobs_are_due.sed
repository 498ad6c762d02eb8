# A parked job that is added is not found when its time comes.
# in: extension
# red: pgtap add_indexes
s/ | 1u << kParkedDueIndex;$/;/
