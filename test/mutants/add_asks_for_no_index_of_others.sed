# Whoever adds a job makes no entries in indexes that somebody else put on the table.
# in: extension
# red: pgtap add_indexes
s/^  bool all_ours = list_length(indexes) == kJobIndexes;$/  bool all_ours = list_length(indexes) >= kJobIndexes;/
s/^  foreach (cell, indexes) all_ours = all_ours && is_ours(lfirst_oid(cell));$//
