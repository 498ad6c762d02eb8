-- Findings of doctor() about the server under the installation: its disks, and its version.

CREATE OR REPLACE FUNCTION pulse_internal.disk_space(
    tablespace oid, OUT total_bytes bigint, OUT free_bytes bigint, OUT device bigint)
  LANGUAGE c VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_disk_space';
COMMENT ON FUNCTION pulse_internal.disk_space(oid) IS
  'Returns the size of the disk that has a tablespace (0: WAL), the bytes that the server may '
  'still write there, and the number of the disk; NULL where the server cannot read the folder.';

CREATE OR REPLACE FUNCTION pulse_internal.server_built_for() RETURNS int
  LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'pulse_server_built_for';
COMMENT ON FUNCTION pulse_internal.server_built_for() IS
  'Returns for which version of the server the library was compiled, as server_version_num.';

-- A tenth of a large disk lasts many hours; a few gigabytes are the whole of a small disk.
CREATE OR REPLACE FUNCTION pulse_internal.is_nearly_full(total_bytes bigint, free_bytes bigint)
  RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN free_bytes < total_bytes / 10 AND free_bytes < 10 * (1024 ^ 3)::bigint;
COMMENT ON FUNCTION pulse_internal.is_nearly_full(bigint, bigint) IS
  'Returns whether a disk has less than a tenth and less than 10 GB free.';

-- Tablespaces in which this database has a relation. One disk is one finding.
CREATE OR REPLACE VIEW pulse_internal.server_findings AS
  WITH place (name, tablespace) AS (
    SELECT 'data directory', 1663::oid
    UNION ALL
    SELECT 'WAL', 0::oid
    UNION ALL
    SELECT 'tablespace ' || pg_catalog.quote_ident(t.spcname), t.oid
      FROM pg_catalog.pg_tablespace AS t
     WHERE t.oid NOT IN (1663, 1664)
       AND (t.oid = (SELECT d.dattablespace FROM pg_catalog.pg_database AS d
                      WHERE d.datname = pg_catalog.current_database())
            OR EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.reltablespace = t.oid))
  )
  SELECT 'disk nearly full'::text AS finding, 'warning'::text AS severity,
         pg_catalog.format('The disk of %s has %s of %s free.',
                           pg_catalog.string_agg(p.name, ' and ' ORDER BY p.name),
                           pg_catalog.pg_size_pretty(pg_catalog.min(s.free_bytes)),
                           pg_catalog.pg_size_pretty(pg_catalog.min(s.total_bytes))) AS detail,
         'Free space, or enlarge the disk: a server that cannot write WAL stops, and no job is '
         'added or ends. See which slots keep WAL, and what else lies there.'::text AS what_to_do
    FROM place AS p CROSS JOIN LATERAL pulse_internal.disk_space(p.tablespace) AS s
   WHERE pulse_internal.is_nearly_full(s.total_bytes, s.free_bytes)
   GROUP BY s.device
  UNION ALL
  SELECT 'library newer than the server', 'warning',
         pg_catalog.format('The library was compiled for PostgreSQL %s.%s, and the server is '
                           '%s.%s.', v.built / 10000, v.built % 10000, v.server / 10000,
                           v.server % 10000),
         'Update the server, or compile on the oldest minor version that you run: what newer '
         'headers name an older server may lack, and then no session of it starts.'
    FROM (SELECT pulse_internal.server_built_for() AS built,
                 pg_catalog.current_setting('server_version_num')::int AS server) AS v
   WHERE v.built > v.server;
COMMENT ON VIEW pulse_internal.server_findings IS
  'Findings about the server: disks, and the version for which the library was compiled.';
