-- The keys of add_job_once: while a period lasts, no second job of the task and key is added. Keys
-- differ where tasks do not, so the key comes first: a comparison on the way down the index ends
-- there.
CREATE TABLE pulse.remembered_key (
  identifier   text COLLATE "C",
  unique_key   text COLLATE "C",
  job_id       bigint NOT NULL,
  unique_until timestamptz NOT NULL,
  added_by     text COLLATE "C" NOT NULL,
  PRIMARY KEY (unique_key, identifier)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
-- Pruning deletes the periods that have been over the longest.
CREATE INDEX remembered_key_age_idx ON pulse.remembered_key (unique_until);

SELECT pg_catalog.pg_extension_config_dump('pulse.remembered_key', '');
