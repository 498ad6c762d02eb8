# A running job is put back under a key that another one waits under.
# file: sql/finish.sql
# red: isolation keyed_add_vs_fail
/^CREATE.* pulse._is_superseded(/,/^COMMENT/ s/job.job_key IS NOT NULL AND EXISTS/false AND EXISTS/
