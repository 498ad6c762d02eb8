# A sweep looks for running jobs in the lane of held ones only.
# in: extension
# red: pgtap fresh_claim
/^PULSE_FUNCTION(pulse_running_ids)/,/^}/s/pulse::add_fresh(&ids.*//
