-- Who may set a handler: a worker calls the function with payloads that others choose, so whoever
-- chooses the function must be allowed to execute it.
\ir support/setup.psql
SELECT plan(10);

CREATE ROLE pulse_op;
SELECT pulse.grant_operator('pulse_op') \g /dev/null
CREATE SCHEMA admin;
CREATE FUNCTION admin.refund(payload json) RETURNS void LANGUAGE sql AS 'SELECT';
SELECT refuses(format($$SELECT pulse.set_task('mail', handler => %s)$$,
                      'admin.refund(json)'::regprocedure::oid), '42501',
  'an operator sets no function of a schema that it may not use', 'pulse_op');
GRANT USAGE ON SCHEMA admin TO pulse_op;
REVOKE EXECUTE ON FUNCTION admin.refund(json) FROM PUBLIC;
SELECT refuses($$SELECT pulse.set_task('mail', handler => 'admin.refund(json)')$$, '42501',
  'nor one that it may not execute', 'pulse_op');
SELECT is((refusal_of($$SELECT pulse.set_task('mail', handler => 'admin.refund(json)')$$,
                      'pulse_op')).hint,
  'GRANT EXECUTE ON FUNCTION admin.refund(json) TO pulse_op, and USAGE ON SCHEMA admin.',
  'the hint tells what is missing');
SELECT lives_ok($$SELECT pulse.set_task('mail', handler => 'admin.refund(json)')$$,
  'a superuser may');
SELECT is((refusal_of($$SELECT pulse.set_task('mail', max_attempts => 3,
                                              handler => 'admin.refund(json)')$$,
                      'pulse_op')).code, '00000', 'what is stored may be given again');
SELECT is((refusal_of($$SELECT pulse.set_task('post', handler => 'admin.refund(json)')$$,
                      'pulse_op')).code, '42501', 'but to no other task');
-- From 16 on a server writes json without its schema.
SELECT matches((SELECT max_attempts || ' ' || handler FROM pulse.task WHERE identifier = 'mail'),
  '^3 admin\.refund\((pg_catalog\.)?json\)$', 'the other settings are stored');

-- A superuser that calls the function of an operator lends it no right.
CREATE FUNCTION public.tidy() RETURNS void LANGUAGE sql SECURITY DEFINER
  AS $$ SELECT pulse.set_task('tidied', handler => 'admin.refund(json)') $$;
ALTER FUNCTION public.tidy() OWNER TO pulse_op;
SELECT refuses('SELECT public.tidy()', '42501', 'nor does a function of the operator');
GRANT EXECUTE ON FUNCTION admin.refund(json) TO pulse_op;
SELECT lives_ok('SELECT public.tidy()', 'once the operator may execute it, its functions may');

SELECT is_empty('SELECT * FROM pulse.verify()', 'all promises are kept');
SELECT * FROM finish();
ROLLBACK;
