# A session that has added a job of a task does not hear that the task was changed.
# in: extension
# red: isolation add_vs_set_task
s/^ *known\.changes == changes && /         /
