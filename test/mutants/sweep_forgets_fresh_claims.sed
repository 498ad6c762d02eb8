# A sweep looks for running jobs in the lane of held ones only.
# in: extension
# red: pgtap in_place_claim
/^RunningIds running_ids(/,/^}/s/^  add_in_place(&ids.*//
