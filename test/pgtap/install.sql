-- sql/structure/preamble.sql: what CREATE EXTENSION takes for granted about the schema, and what it
-- does not.
\ir support/setup.psql
SELECT plan(16);

CREATE ROLE pulse_mallory;
CREATE ROLE pulse_owner SUPERUSER;
DROP EXTENSION pg_pulse CASCADE;
DROP SCHEMA pulse CASCADE;

-- How CREATE EXTENSION ends after these statements, which are then undone with it.
CREATE FUNCTION install_after(VARIADIC statements text[] = '{}') RETURNS refusal
  LANGUAGE plpgsql AS $$
DECLARE
  statement text;
  seen refusal := ROW('00000', '', '', '');
BEGIN
  BEGIN
    FOREACH statement IN ARRAY statements LOOP
      EXECUTE statement;
    END LOOP;
    CREATE EXTENSION pg_pulse;
    RAISE EXCEPTION 'undone' USING ERRCODE = 'ZZ000';
  EXCEPTION
    WHEN SQLSTATE 'ZZ000' THEN RETURN seen;
    WHEN OTHERS THEN
      GET STACKED DIAGNOSTICS seen.code = RETURNED_SQLSTATE, seen.message = MESSAGE_TEXT,
        seen.detail = PG_EXCEPTION_DETAIL, seen.hint = PG_EXCEPTION_HINT;
      RETURN seen;
  END;
END $$;

SELECT is((install_after()).code, '00000', 'without a schema the extension makes its own');
SELECT is((install_after('CREATE SCHEMA pulse')).code, '00000', 'an empty one of ours will do');
SELECT is((install_after('CREATE SCHEMA pulse AUTHORIZATION pulse_owner')).code, '00000',
  'so will one of another superuser');
SELECT is((install_after('CREATE SCHEMA pulse', 'GRANT USAGE ON SCHEMA pulse TO public')).code,
  '00000', 'who may only look things up in it does no harm');
SELECT answers(
  $$SELECT code, message, hint <> ''
      FROM install_after('CREATE SCHEMA pulse AUTHORIZATION pulse_mallory')$$,
  ROW('42501', 'schema pulse belongs to role pulse_mallory', true),
  'a schema that somebody else made is refused');
SELECT is((install_after('CREATE SCHEMA pulse_internal AUTHORIZATION pulse_mallory')).code, '42P06',
          'a schema of the name of the internal one is refused, whoever made it');
SELECT is((install_after('CREATE SCHEMA pulse',
                         format('GRANT CREATE ON SCHEMA pulse TO %s', who))).code, '42501',
          'so is one in which ' || who || ' may create')
  FROM unnest('{pulse_mallory,public}'::text[]) AS who;
SELECT answers(
  $$SELECT code, message
      FROM install_after('CREATE SCHEMA pulse',
                         'ALTER DEFAULT PRIVILEGES GRANT CREATE ON SCHEMAS TO public',
                         'GRANT CREATE ON SCHEMA pulse TO pulse_mallory')$$,
  ROW('42501', 'schema pulse lets roles besides its owner create objects'),
  'also where the default of who installs would let all create');

-- Each of these would be found by a body of ours that left a name open, or beside one of ours.
SELECT answers(
  format($$SELECT code, detail LIKE 'It holds %%.' FROM install_after('CREATE SCHEMA pulse', %L)$$,
         planted),
  ROW('55000', true), 'and one with ' || what)
  FROM (VALUES
    ('CREATE TABLE pulse.notes ()', 'a table'),
    ('CREATE FUNCTION pulse.get_job(int) RETURNS void LANGUAGE sql
       AS $f$ SELECT $f$', 'a function that fits a call of ours better'),
    ('CREATE FUNCTION pulse.now() RETURNS timestamptz LANGUAGE sql
       RETURN NULL::timestamptz',
     'one of the name of ours'),
    ('CREATE TYPE pulse.text AS ENUM ()', 'a type'),
    ('CREATE OPERATOR pulse.= (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_catalog.textne)',
     'an operator'),
    ('CREATE COLLATION pulse."C" (locale = ''POSIX'')', 'a collation')) AS p (planted, what);

CREATE SCHEMA trap;
CREATE FUNCTION trap.text_ne(text, text) RETURNS boolean
  LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped' USING ERRCODE = 'ZZ001'; END $$;
CREATE OPERATOR trap.= (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.text_ne);
CREATE TABLE trap.pg_extension ();
CREATE TABLE trap.pg_namespace ();
CREATE TEMP TABLE pg_roles ();
CREATE TEMP TABLE pg_depend ();
SET LOCAL search_path = trap, pg_temp, pg_catalog, public;
SELECT (public.install_after()).code AS code \gset
RESET search_path;
SELECT is(:'code'::text, '00000', 'nothing in the installing session''s search_path is used');

SELECT * FROM finish();
ROLLBACK;
