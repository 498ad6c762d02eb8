-- Findings of doctor() about standbys: what a failover would lose, which commits wait for a
-- standby, and how many ids failovers have left. The views read the server alone, whatever manages
-- the failovers.

CREATE OR REPLACE FUNCTION pulse_internal.replay_is_paused() RETURNS boolean
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  RETURN pg_is_in_recovery() AND pg_is_wal_replay_paused();
END $$;
COMMENT ON FUNCTION pulse_internal.replay_is_paused() IS
  'Returns whether this is a standby that an operator told to replay no more WAL.';

-- A tenth of a second's bytes is no lag, and a standby that receives nothing reports no time.
CREATE OR REPLACE FUNCTION pulse_internal.lagging_standbys()
  RETURNS TABLE (name text, lacks_bytes numeric, lag interval)
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  many_bytes CONSTANT numeric := 64 * 1024 ^ 2;
  long_lag CONSTANT interval := '10 s';
BEGIN
  IF pg_is_in_recovery() THEN
    RETURN;
  END IF;
  RETURN QUERY
  SELECT s.application_name, pg_wal_lsn_diff(pg_current_wal_flush_lsn(), s.flush_lsn), s.flush_lag
    FROM pg_stat_replication AS s
   WHERE s.state = 'streaming'
     AND (s.flush_lag > long_lag
          OR pg_wal_lsn_diff(pg_current_wal_flush_lsn(), s.flush_lsn) > many_bytes);
END $$;
COMMENT ON FUNCTION pulse_internal.lagging_standbys() IS
  'Returns the standbys of this primary that lack more than 64 MB or 10 s of its WAL.';

CREATE OR REPLACE VIEW pulse_internal.failover_findings AS
  WITH setting AS (
    SELECT nullif(pg_catalog.current_setting('synchronous_standby_names'), '') AS names,
           pg_catalog.current_setting('synchronous_commit') AS commit_waits
  ), standby AS MATERIALIZED (
    SELECT pg_catalog.count(*) FILTER (WHERE r.sync_state IN ('sync', 'quorum')) AS synchronous
      FROM pg_catalog.pg_stat_replication AS r
  )
  SELECT 'lagging standby'::text AS finding, 'warning'::text AS severity,
         pg_catalog.format('Standby %L lacks %s of WAL%s.', l.name,
                           pg_catalog.pg_size_pretty(l.lacks_bytes),
                           ', and answers after ' || l.lag) AS detail,
         'A failover to it loses the last jobs, unless commits wait for it: see its disk and '
         'network, and synchronous_standby_names.'::text AS what_to_do
    FROM pulse_internal.lagging_standbys() AS l
  UNION ALL
  SELECT 'replay paused', 'warning', 'This standby receives WAL and replays none of it.',
         'SELECT pg_wal_replay_resume(): until then what it shows is old, and its promotion takes '
         'the longer.'
   WHERE pulse_internal.replay_is_paused()
  UNION ALL
  SELECT 'no primary', 'warning', 'This standby has no connection to its primary.',
         'See primary_conninfo and the server''s log: a failover to it loses what it does not '
         'receive.'
   WHERE pg_catalog.pg_is_in_recovery()
     AND nullif(pg_catalog.current_setting('primary_conninfo'), '') IS NOT NULL
     AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_wal_receiver AS w WHERE w.pid IS NOT NULL)
  UNION ALL
  SELECT 'no synchronous standby', 'error',
         pg_catalog.format('synchronous_standby_names is %L, and no such standby is connected: '
                           'each commit waits.', s.names),
         'Start the standby. If jobs are to be added without it, ALTER SYSTEM RESET '
         'synchronous_standby_names and reload; a cluster manager may set it again.'
    FROM setting AS s, standby AS b
   WHERE s.names IS NOT NULL AND b.synchronous = 0 AND s.commit_waits NOT IN ('off', 'local')
     AND NOT pg_catalog.pg_is_in_recovery()
     AND pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')
  UNION ALL
  SELECT 'synchronous_commit at odds', 'warning',
         CASE WHEN s.names IS NULL
           THEN pg_catalog.format('synchronous_commit is %L, and synchronous_standby_names is '
                                  'empty: commits wait for no standby.', s.commit_waits)
           ELSE pg_catalog.format('synchronous_standby_names is %L, and synchronous_commit is %L: '
                                  'a failover loses jobs whose commit was answered.', s.names,
                                  s.commit_waits) END,
         'Decide which it is to be, and set both: ALTER SYSTEM, ALTER DATABASE or ALTER ROLE.'
    FROM setting AS s
   WHERE NOT pg_catalog.pg_is_in_recovery()
     AND (s.names IS NULL) = (s.commit_waits IN ('remote_write', 'remote_apply'))
     AND s.commit_waits <> 'on'
  UNION ALL
  SELECT 'few ids left', 'warning',
         pg_catalog.format('Shard %s has given out ids up to %s of %s.', b.shard, q.last_value,
                           b.id_ceiling),
         'A failover takes 2^32 ids. Before none are left, let the jobs end, and create the '
         'extension anew.'
    FROM pulse_internal.id_bounds AS b, pulse.job_id_seq AS q
   WHERE q.last_value > b.id_floor + (b.id_ceiling - b.id_floor) / 4 * 3;
COMMENT ON VIEW pulse_internal.failover_findings IS
  'Findings about standbys, synchronous commits, and the ids that failovers have left.';
