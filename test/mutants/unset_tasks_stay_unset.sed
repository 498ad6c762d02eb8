# A session that has claimed jobs of a task without settings does not hear that it has some now.
# in: extension
# red: isolation claim_vs_set_task
s/^ *known\.changes == changes && /         /
