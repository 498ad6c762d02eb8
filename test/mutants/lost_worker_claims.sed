# A worker that was declared lost may claim.
# in: extension
# red: pgtap claim
s/^  if (status_is(last->row.row, "lost")) refuse_worker(worker_id, "lost");$//
