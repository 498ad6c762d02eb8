-- The vectors of clients/vectors, which each library's `unique` passes: the server reads canonical
-- JSON as the library read the payload, names stand in their order, and each key is accepted.
\ir support/setup.psql
\set vectors `cat "$PULSE_ROOT/clients/vectors/unique_keys.json"`
SELECT plan(3 * (SELECT count(*)::int FROM json_array_elements(:'vectors') AS v
                  WHERE v ->> 'refused' IS NULL));

CREATE TEMP TABLE vector AS
SELECT v ->> 'name' AS name, v ->> 'canonical' AS canonical,
       CASE WHEN v -> 'by' IS NULL THEN (v -> 'payload')::jsonb
         ELSE (SELECT coalesce(jsonb_object_agg(m.key, m.value), '{}')
                 FROM jsonb_each((v -> 'payload')::jsonb) AS m
                WHERE m.key IN (SELECT json_array_elements_text(v -> 'by'))) END AS meant
  FROM json_array_elements(:'vectors') AS v
 WHERE v ->> 'refused' IS NULL;

SELECT is(canonical::jsonb, meant, name || ': canonical JSON is the payload, or its members')
  FROM vector;
SELECT is(names, (SELECT array_agg(n ORDER BY n COLLATE "C") FROM unnest(names) AS n),
          name || ': names in the order of code points')
  FROM vector, LATERAL (SELECT array_agg(k) AS names
    FROM json_object_keys(CASE WHEN canonical LIKE '{%' THEN canonical::json ELSE '{}' END) AS k)
    AS of_object;
SELECT ok((pulse.add_job_once('1 day', key, name)).is_new, name || ': a key of the server')
  FROM vector, LATERAL (SELECT CASE WHEN octet_length(canonical) <= 256 THEN canonical
    ELSE 'sha256:' || encode(sha256(convert_to(canonical, 'UTF8')), 'hex') END AS key) AS of_job;

SELECT * FROM finish();
ROLLBACK;
