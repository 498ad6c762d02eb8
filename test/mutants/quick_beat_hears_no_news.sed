# A beat without a look does not hear that a task was changed.
# in: extension
# red: isolation quick_heartbeat
s/relation != known_task && //
