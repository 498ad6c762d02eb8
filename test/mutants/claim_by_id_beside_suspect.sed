# A worker that runs a suspect alone gets another job by its id.
# in: extension
# red: pgtap last_chance
s/^  bool waits = runs_isolated_job(worker_id, table) || /  bool waits = /
