-- Holders of dead rows: vacuum removes no row that the oldest of these holders might still read.
-- The view has every holder that the server asks: sessions of this database by their snapshot and
-- by their own transaction, prepared transactions, slots, and standbys that report their queries.

-- A slot in use keeps up within seconds, and even then lags behind by many transactions.
CREATE OR REPLACE FUNCTION pulse_internal.is_slot_behind(
    is_used boolean, transactions bigint, wal_bytes numeric)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN coalesce(transactions > 1000000, false)
         OR NOT is_used AND coalesce(wal_bytes > 200 * 1024 * 1024, false);
COMMENT ON FUNCTION pulse_internal.is_slot_behind(boolean, bigint, numeric) IS
  'Returns whether a replication slot keeps dead rows or WAL for a consumer that does not follow.';

-- A session that has only written has a transaction and no snapshot between two statements.
CREATE OR REPLACE VIEW pulse_internal.horizon_holder AS
  SELECT 'session'::text AS kind,
         pg_catalog.format('Process %s of role %s', a.pid, a.usename)
         || CASE WHEN a.state LIKE 'idle in transaction%'
              THEN ', idle in its transaction since ' || a.state_change || ',' ELSE '' END
           AS holder,
         greatest(pg_catalog.age(a.backend_xmin), pg_catalog.age(a.backend_xid))::bigint
           AS transactions, a.xact_start AS since,
         pg_catalog.format('Let it end, or SELECT pg_terminate_backend(%s).', a.pid) AS what_to_do
    FROM pg_catalog.pg_stat_activity AS a
   WHERE coalesce(a.backend_xmin, a.backend_xid) IS NOT NULL
     AND a.pid <> pg_catalog.pg_backend_pid()
     AND a.datname = pg_catalog.current_database()
     AND a.pid NOT IN (SELECT v.pid FROM pg_catalog.pg_stat_progress_vacuum AS v)
  UNION ALL
  SELECT 'prepared', pg_catalog.format('The prepared transaction %L of role %s', p.gid, p.owner),
         pg_catalog.age(p.transaction), p.prepared,
         pg_catalog.format('COMMIT PREPARED or ROLLBACK PREPARED %L.', p.gid)
    FROM pg_catalog.pg_prepared_xacts AS p WHERE p.database = pg_catalog.current_database()
  UNION ALL
  SELECT 'slot', pg_catalog.format('Replication slot %L, which %s,', r.slot_name,
                                   CASE WHEN r.active THEN 'process ' || r.active_pid || ' uses'
                                     ELSE 'nothing uses' END),
         pg_catalog.age(r.xmin), NULL,
         pg_catalog.format('Let its consumer catch up; if there is none any more: SELECT '
                           'pg_drop_replication_slot(%L).', r.slot_name)
    FROM pg_catalog.pg_replication_slots AS r WHERE r.xmin IS NOT NULL
  UNION ALL
  SELECT 'standby', pg_catalog.format('Standby %s, to which process %s of role %s sends WAL,',
                                      coalesce(nullif(r.application_name, ''), 'without a name'),
                                      r.pid, r.usename),
         pg_catalog.age(r.backend_xmin), NULL,
         'End its long queries, or set hot_standby_feedback there to off.'
    FROM pg_catalog.pg_stat_replication AS r WHERE r.backend_xmin IS NOT NULL;
COMMENT ON VIEW pulse_internal.horizon_holder IS
  'The processes that keep dead rows from vacuum: of how many transactions, since when if the '
  'time is known, and how to end the hold.';

CREATE OR REPLACE VIEW pulse_internal.horizon_findings AS
  SELECT 'old transaction'::text AS finding, 'warning'::text AS severity,
         pg_catalog.format('%s has a transaction since %s, so no dead row since then is removed.',
                           h.holder, h.since) AS detail, h.what_to_do
    FROM pulse_internal.horizon_holder AS h
   WHERE h.kind = 'session' AND h.since < pulse.now() - interval '5 minutes'
  UNION ALL
  SELECT 'old prepared transaction', 'warning',
         pg_catalog.format('%s is there since %s: its locks hold, and no dead row since then is '
                           'removed.', h.holder, h.since), h.what_to_do
    FROM pulse_internal.horizon_holder AS h
   WHERE h.kind = 'prepared' AND h.since < pulse.now() - interval '5 minutes'
  UNION ALL
  SELECT 'standby behind', 'warning',
         pg_catalog.format('%s has a query that keeps the dead rows of the last %s transactions.',
                           h.holder, h.transactions), h.what_to_do
    FROM pulse_internal.horizon_holder AS h
   WHERE h.kind = 'standby' AND pulse_internal.is_slot_behind(true, h.transactions, NULL)
  UNION ALL
  SELECT 'slot behind', 'warning',
         pg_catalog.format('Replication slot %L, which %s, keeps %s of WAL, and dead rows of the '
                           'last %s transactions%s.', s.slot_name,
                           CASE WHEN s.is_used THEN 'process ' || s.active_pid || ' uses'
                             ELSE 'nothing uses' END,
                           pg_catalog.pg_size_pretty(coalesce(s.wal_bytes, 0)),
                           coalesce(s.transactions, 0),
                           CASE WHEN s.is_of_catalogue THEN ' in the catalogue' ELSE '' END),
         pg_catalog.format('Let its consumer catch up; if there is none any more: SELECT '
                           'pg_drop_replication_slot(%L).', s.slot_name)
    FROM (SELECT r.slot_name, r.active AS is_used, r.active_pid,
                 greatest(pg_catalog.age(r.xmin)::bigint, pg_catalog.age(r.catalog_xmin)::bigint)
                   AS transactions,
                 r.xmin IS NULL AND r.catalog_xmin IS NOT NULL AS is_of_catalogue,
                 pg_catalog.pg_wal_lsn_diff(
                   CASE WHEN pg_catalog.pg_is_in_recovery()
                     THEN pg_catalog.pg_last_wal_replay_lsn()
                     ELSE pg_catalog.pg_current_wal_lsn() END, r.restart_lsn) AS wal_bytes
            FROM pg_catalog.pg_replication_slots AS r) AS s
   WHERE pulse_internal.is_slot_behind(s.is_used, s.transactions, s.wal_bytes);
COMMENT ON VIEW pulse_internal.horizon_findings IS
  'Findings about holders of dead rows: transactions, replication slots, and standbys.';
