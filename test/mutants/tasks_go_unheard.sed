# Nobody is told that the row of a task is gone.
# in: sql
# red: isolation add_vs_set_task
s/^  AFTER INSERT OR UPDATE OR DELETE ON pulse.task$/  AFTER INSERT OR UPDATE ON pulse.task/
