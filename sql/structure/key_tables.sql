-- Running jobs that do not run again, because a newer job has got their key, or remove_job took the
-- key from them. The row of a running job belongs to its worker: no producer changes or locks it.
CREATE TABLE pulse.superseded_job (
  job_key text COLLATE "C" NOT NULL,
  job_id  bigint NOT NULL,
  PRIMARY KEY (job_key, job_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Sweeps decide about jobs that came back while a transaction in progress changed a job under the
-- same key.
CREATE INDEX job_undecided_idx ON pulse.job (id) WHERE index_lane = 'k';

SELECT pg_catalog.pg_extension_config_dump('pulse.superseded_job', '');
