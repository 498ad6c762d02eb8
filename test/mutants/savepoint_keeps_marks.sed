# A rolled-back savepoint does not put back the marks that were taken in it.
# in: extension
# red: isolation promote_vs_finish
s/^  wake_for_undone_savepoint(undone);//
