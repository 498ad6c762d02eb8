-- Findings of doctor() about failovers: how many ids failovers have left.

CREATE OR REPLACE VIEW pulse_internal.failover_findings AS
  SELECT 'few ids left'::text AS finding, 'warning'::text AS severity,
         pg_catalog.format('Shard %s has given out ids up to %s of %s.', b.shard, q.last_value,
                           b.id_ceiling) AS detail,
         'A failover takes 2^32 ids. Before none are left, let the jobs end, and create the '
         'extension anew.'::text AS what_to_do
    FROM pulse_internal.id_bounds AS b, pulse.job_id_seq AS q
   WHERE q.last_value > b.id_floor + (b.id_ceiling - b.id_floor) / 4 * 3;
COMMENT ON VIEW pulse_internal.failover_findings IS
  'Findings about the ids that failovers have left.';
