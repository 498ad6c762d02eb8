# An aborted claim does not put back the marks that it took.
# in: extension
# red: isolation promote_vs_finish
/^void wake_after_abort(/,/^}/ s/^ *set_queue_marks(database, pending\.\(taken\|returned\));//
