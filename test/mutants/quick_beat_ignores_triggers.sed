# A beat without a look does not hear that the table got a trigger.
# in: extension
# red: isolation quick_heartbeat
s/ && relation != remembered.heartbeat//
