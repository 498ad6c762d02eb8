# Whoever adds a job makes no entries in indexes that somebody else put on the table.
# in: extension
# red: pgtap add_indexes
s/^  bool are_own = list_length(indexes) == kJobIndexes;$/  bool are_own = list_length(indexes) >= kJobIndexes;/
s/^  foreach (cell, indexes) are_own = are_own && is_own_index(lfirst_oid(cell));$//
