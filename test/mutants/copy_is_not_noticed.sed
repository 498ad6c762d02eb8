# Sessions that claimed before do not hear of a restore or an adoption.
# in: extension
# red: isolation first_use_vs_restore
/^PULSE_FUNCTION(pulse_rows_changed)/,/^}/ s/^  CacheInvalidateRelcache(.*$//
