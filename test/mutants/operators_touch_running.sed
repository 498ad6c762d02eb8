# complete_jobs and its like take running jobs too.
# in: sql
# red: pgtap operators
s/j.id = ANY (job_ids) AND j.state <> 'running'/j.id = ANY (job_ids)/
