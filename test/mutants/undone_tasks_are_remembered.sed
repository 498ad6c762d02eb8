# What a statement that failed has seen of tasks that it wrote itself is remembered.
# in: extension
# red: isolation add_vs_set_task
s/^ *count_rollback_as_task_change();$//
