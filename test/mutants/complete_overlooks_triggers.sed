# A completed job is deleted past the triggers that somebody hung on the table.
# in: extension
# red: pgtap finish
s/ || table->relation->trigdesc ||$/ ||/
