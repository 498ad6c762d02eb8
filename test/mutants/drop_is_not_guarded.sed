# DROP EXTENSION deletes live jobs without a word.
# in: extension
# red: pgtap drop_guard
s/^  if (jobs > 0) refuse_drop(jobs);//
