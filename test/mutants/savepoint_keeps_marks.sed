# A rolled-back savepoint does not put back the marks that were taken in it.
# in: extension
# red: isolation promote_vs_finish
/^extern "C" void pulse_subtransaction_callback(/,/^}/ s/^    undo_savepoint(mine);//
