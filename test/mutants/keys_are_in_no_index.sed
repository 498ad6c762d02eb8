# A key is looked for in a way that no index answers.
# in: sql
# red: cost plans
/r.job_key = _dedupe_job.job_key AND r.index_lane <> 'h'/s/ AND.*//
/OR r.job_key = _dedupe_job.job_key/d
