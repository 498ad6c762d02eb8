-- Findings of doctor() about the rights of roles: rights of a kind that a role lacks, and rights
-- that no grant_... of the role gives. The lists of rights, which are at hand, tell of most
-- findings.

CREATE OR REPLACE VIEW pulse_internal.role_findings AS
  WITH rights AS MATERIALIZED (SELECT * FROM pulse_internal.rights()), granted AS (
    SELECT DISTINCT a.grantee AS role, r.kind
      FROM rights AS r, LATERAL pg_catalog.aclexplode(r.acl) AS a
     WHERE r.is_telling AND a.privilege_type = r.privilege AND a.grantee <> 0::oid
  ), missing AS (
    SELECT g.role::regrole AS role, g.kind,
           r.class || ' ' || pulse_internal.object_name(r.class, r.id) AS object
      FROM granted AS g, rights AS r
     WHERE r.kind = g.kind AND r.class IN ('ROUTINE', 'TABLE')
       AND NOT CASE
         WHEN EXISTS (SELECT FROM pg_catalog.aclexplode(r.acl) AS a
                       WHERE a.grantee = g.role AND a.privilege_type = r.privilege) THEN true
         WHEN r.class = 'ROUTINE' THEN pg_catalog.has_function_privilege(g.role, r.id, r.privilege)
         ELSE pg_catalog.has_table_privilege(g.role, r.id, r.privilege) END
  ), public_right AS (
    SELECT DISTINCT r.class, r.id FROM rights AS r, LATERAL pg_catalog.aclexplode(r.acl) AS a
     WHERE a.grantee = 0::oid AND r.class IN ('ROUTINE', 'TABLE')
  ), held AS MATERIALIZED (
    -- An owner has rights from itself; no other role has any from itself.
    SELECT DISTINCT a.grantee AS role, r.class, r.id,
           a.privilege_type || CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END
             AS privilege
      FROM rights AS r, LATERAL pg_catalog.aclexplode(r.acl) AS a WHERE a.grantee <> a.grantor
    UNION ALL
    SELECT a.grantee, 'TABLE', c.attrelid,
           pg_catalog.format('%s (%I)', a.privilege_type, c.attname)
      FROM pg_catalog.pg_attribute AS c, LATERAL pg_catalog.aclexplode(c.attacl) AS a
     WHERE c.attrelid = ANY (ARRAY(SELECT r.id FROM rights AS r WHERE r.class = 'TABLE'))
       AND c.attacl IS NOT NULL AND a.grantee <> a.grantor
  ), of_kind AS (
    SELECT DISTINCT h.role, g.kind FROM (SELECT DISTINCT held.role FROM held) AS h
      JOIN granted AS g ON pg_catalog.pg_has_role(h.role, g.role, 'USAGE')
  ), beside_kinds AS (
    SELECT h.role, h.privilege, h.class, h.id FROM held AS h
    EXCEPT
    SELECT k.role, r.privilege, r.class, r.id FROM of_kind AS k JOIN rights AS r ON r.kind = k.kind
  ), other AS (
    SELECT CASE b.role WHEN 0::oid THEN 'PUBLIC' ELSE b.role::regrole::text END AS role,
           b.privilege || ' on ' || b.class || ' ' || pulse_internal.object_name(b.class, b.id)
             AS privilege
      FROM beside_kinds AS b
     -- The rights of PUBLIC on functions and tables are a finding of their own. A role that acts as
     -- the owner, as every superuser does, needs no right.
     WHERE CASE WHEN b.role = 0::oid THEN b.class NOT IN ('ROUTINE', 'TABLE')
             ELSE NOT EXISTS (SELECT FROM pg_catalog.pg_extension AS e
                               WHERE e.extname = 'pg_pulse'
                                 AND pg_catalog.pg_has_role(b.role, e.extowner, 'MEMBER')) END
       -- To name the schema harms nothing. The documentation grants a scheduler's role the ticks.
       AND CASE b.class
             WHEN 'SCHEMA' THEN b.id <> 'pulse'::regnamespace OR b.privilege <> 'USAGE'
             WHEN 'ROUTINE' THEN b.privilege <> 'EXECUTE'
               OR b.id::regproc::text NOT IN ('pulse.tick', 'pulse.run_tick')
             ELSE true END
  )
  SELECT 'missing rights'::text AS finding, 'warning'::text AS severity,
         pg_catalog.format('Role %s is a %s, and lacks %s of its rights, such as %s.', m.role,
                           m.kind, pg_catalog.count(*), pg_catalog.min(m.object)) AS detail,
         pg_catalog.format('SELECT pulse.grant_%s(%L), as after each upgrade.', m.kind,
                           m.role::text) AS what_to_do
    FROM missing AS m GROUP BY m.role, m.kind
  UNION ALL
  SELECT 'public rights', 'error',
         pg_catalog.format('Every role may use %s of the objects of pg_pulse, such as %s.',
                           pg_catalog.count(*),
                           pg_catalog.min(pulse_internal.object_name(p.class, p.id))),
         'REVOKE it FROM PUBLIC, and grant by kind of role: grant_producer() and its like.'
    FROM public_right AS p HAVING pg_catalog.count(*) > 0
  UNION ALL
  SELECT 'other rights', 'warning',
         pg_catalog.format('Role %s has %s rights that none of its grant_... gives, such as %s.',
                           o.role, pg_catalog.count(*), pg_catalog.min(o.privilege)),
         'REVOKE them, and grant by kind of role: grant_producer() and its like. Under 0.1.0 they '
         'may have come from ALTER DEFAULT PRIVILEGES.'
    FROM other AS o GROUP BY o.role;
COMMENT ON VIEW pulse_internal.role_findings IS 'Findings about the rights of roles.';
