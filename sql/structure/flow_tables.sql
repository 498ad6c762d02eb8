-- Jobs that wait for others, and flows.

-- The parents of a job: a row has the parents whose ids are neighbours. The rows of a job go when
-- the job starts; the rows of a job cancelled because of a parent stay, for a retry of the parent.
CREATE TABLE pulse.dependency (
  child_id     bigint NOT NULL,
  parents_from bigint NOT NULL,
  parents      bigint[] NOT NULL,
  parents_key  bigint NOT NULL GENERATED ALWAYS AS
    (CASE cardinality(parents) WHEN 1 THEN parents[1] ELSE -parents_from END) STORED,
  PRIMARY KEY (child_id, parents_from)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
CREATE INDEX dependency_parent_idx ON pulse.dependency (parents_key);

-- Jobs that were added together. A job is a member of one flow at most. The row keeps parents for
-- the picture of the flow: the rows of pulse.dependency go when the job starts.
CREATE SEQUENCE pulse.flow_id_seq AS bigint;
CREATE TABLE pulse.flow (
  id         bigint PRIMARY KEY,
  name       text,
  created_at timestamptz NOT NULL DEFAULT pg_catalog.now()
);
CREATE INDEX flow_created_idx ON pulse.flow (created_at);
CREATE TABLE pulse.flow_job (
  job_id  bigint PRIMARY KEY,
  flow_id bigint NOT NULL,
  key     text,
  parents bigint[]
);
CREATE INDEX flow_job_flow_idx ON pulse.flow_job (flow_id);

SELECT pg_catalog.pg_extension_config_dump('pulse.dependency', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.flow', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.flow_job', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.flow_id_seq', '');
