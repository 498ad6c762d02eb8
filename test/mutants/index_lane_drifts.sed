# A job claimed in place has a lane and indexes of its own where C code writes it.
# in: extension
# red: pgtap index_lane
s/^  return state == catalog()->state_running && !is_in_place ? kLaneRunning : kLaneOpen;$/  return state == catalog()->state_running ? kLaneRunning : kLaneOpen;/
