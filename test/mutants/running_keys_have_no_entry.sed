# A claim of a job with a key enters it among those that wait.
# in: extension
# red: pgtap change_indexes
s/ (lane == kLaneRunning ? kRunningKeyIndex : kWaitingKeyIndex);$/ kWaitingKeyIndex;/
