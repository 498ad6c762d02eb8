# A sweep looks for running jobs in the lane of held ones only.
# in: extension
# red: pgtap fresh_claim
/^RunningIds running_ids(/,/^}/s/^  add_fresh(&ids.*//
