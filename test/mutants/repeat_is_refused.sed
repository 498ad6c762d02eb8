# A repeated completion is refused, although it is recorded.
# in: sql
# red: isolation complete_vs_complete
/^CREATE.* pulse._refused_token(/,/^END/ s/RETURN NULL;/RETURN 'repeated';/
