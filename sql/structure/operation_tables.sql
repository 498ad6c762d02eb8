-- Changes of many jobs at once by operators, and how each of the jobs was before.

CREATE SEQUENCE pulse.operation_id_seq AS bigint;
CREATE TABLE pulse.operation (
  id         bigint PRIMARY KEY,
  action     text NOT NULL,
  filter     json NOT NULL,
  arguments  json NOT NULL,
  actor      text,
  role       text NOT NULL,
  state      text NOT NULL DEFAULT 'running',
  last_id    bigint NOT NULL,
  checked_to  bigint NOT NULL DEFAULT 0,
  changed    bigint NOT NULL DEFAULT 0,
  skipped    bigint NOT NULL DEFAULT 0,
  undoes     bigint UNIQUE,
  skipped_because json,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL,
  ended_at   timestamptz
);
CREATE INDEX operation_updated_idx ON pulse.operation (updated_at);
CREATE TABLE pulse.operation_job (
  operation_id bigint NOT NULL,
  job_id       bigint NOT NULL,
  stamp        text NOT NULL,
  before       json NOT NULL,
  undo         text,
  PRIMARY KEY (operation_id, job_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);

SELECT pg_catalog.pg_extension_config_dump('pulse.operation', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.operation_job', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.operation_id_seq', '');
