-- The jobs that add_job_for_request has added under the keys of clients, so that a repeated
-- request adds no further job.
CREATE TABLE pulse.idempotency_key (
  role         text COLLATE "C",
  client       text COLLATE "C",
  key          text COLLATE "C",
  request_hash text COLLATE "C" NOT NULL,
  job_id       bigint,
  state        text,
  run_at       timestamptz,
  created_at   timestamptz NOT NULL,
  PRIMARY KEY (role, client, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
-- Pruning deletes the oldest first.
CREATE INDEX idempotency_key_age_idx ON pulse.idempotency_key (created_at);

SELECT pg_catalog.pg_extension_config_dump('pulse.idempotency_key', '');
