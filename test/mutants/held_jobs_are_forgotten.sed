# Who found only a job that somebody holds is not to look again soon.
# in: extension
# red: isolation reserved_ranges
/claim->is_job_held = true;/d
