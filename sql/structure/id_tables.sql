-- Ids of jobs, flows and operations. One function takes every id. ids.sql has the leap over the ids
-- that a lost server may have given out.

CREATE FUNCTION pulse_internal.next_id(sequence regclass) RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_next_id';
ALTER TABLE pulse.job ALTER COLUMN id
  SET DEFAULT pulse_internal.next_id('pulse.job_id_seq');
ALTER TABLE pulse.flow ALTER COLUMN id
  SET DEFAULT pulse_internal.next_id('pulse.flow_id_seq');
ALTER TABLE pulse.operation ALTER COLUMN id
  SET DEFAULT pulse_internal.next_id('pulse.operation_id_seq');

-- The place where ids are taken. A copy of it that lags behind has the note of its own past.
CREATE FUNCTION pulse_internal.id_place() RETURNS bigint
  LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_id_place';
CREATE SEQUENCE pulse.id_place_seq AS bigint;
SELECT pg_catalog.setval('pulse.id_place_seq', pulse_internal.id_place());

-- The last gap, as the leap notes it: a rollback would undo a row. A sweep makes the row.
CREATE SEQUENCE pulse.gap_from_seq AS bigint;
CREATE SEQUENCE pulse.gap_to_seq AS bigint;
CREATE SEQUENCE pulse.gap_at_seq AS bigint;
CREATE TABLE pulse.id_gap (
  to_id    bigint PRIMARY KEY,
  from_id  bigint NOT NULL,
  leapt_at timestamptz NOT NULL
);

SELECT pg_catalog.pg_extension_config_dump('pulse.id_place_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.gap_from_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.gap_to_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.gap_at_seq', '');
SELECT pg_catalog.pg_extension_config_dump('pulse.id_gap', '');
