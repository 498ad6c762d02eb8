# A claim, and all else that changes jobs, goes past the triggers that a DBA hung on the table.
# in: extension
# red: pgtap audit
s/^  return table->trigdesc || table->rd_rules ||/  return table->rd_rules ||/
