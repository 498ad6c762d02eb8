-- The ends of attempts, counted per minute and per hour: sweeps add the counts of shared memory. An
-- empty name stands for all names that found no counter.

CREATE TABLE pulse.counter (
  span        text NOT NULL,
  kind        text NOT NULL,
  began       timestamptz NOT NULL,
  name        text COLLATE "C" NOT NULL,
  started     bigint NOT NULL,
  completed   bigint NOT NULL,
  failed      bigint NOT NULL,
  retried     bigint NOT NULL,
  quarantined bigint NOT NULL,
  cancelled   bigint NOT NULL,
  returned    bigint NOT NULL,
  waits       int[] NOT NULL,
  runs        int[] NOT NULL,
  PRIMARY KEY (span, kind, began, name)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
CREATE FUNCTION pulse_internal.add_counts(sums bigint[], counts int[]) RETURNS bigint[]
  LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_add_counts';
CREATE AGGREGATE pulse_internal.sum_counts(int[]) (
  SFUNC = pulse_internal.add_counts, STYPE = bigint[], INITCOND = '{}');
