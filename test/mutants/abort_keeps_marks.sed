# An aborted claim does not put back the marks that it took.
# in: extension
# red: isolation promote_vs_finish
/^void tell_abort(/,/^}/ s/^ *set_marks(database, pending\.\(taken\|returned\));//
