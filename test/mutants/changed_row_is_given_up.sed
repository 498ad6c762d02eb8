# fail() and its like take a job for lost whose row changed while they waited.
# in: extension
# red: isolation finish_vs_progress
/^Hold hold_attempt(/,/^}/ s/^    look_again(jobs);$/    return Hold::kOver;/
