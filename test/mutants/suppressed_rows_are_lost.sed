# A row that a trigger suppresses counts as written.
# in: extension
# red: pgtap audit
s/^    if (SPI_processed == 0 || (returns \&\& !SPI_tuptable)) refuse_suppression(table);$//
