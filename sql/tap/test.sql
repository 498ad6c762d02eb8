-- A test: a transaction that is rolled back, in which sequences come back too.

CREATE OR REPLACE FUNCTION pulse_tap.require_test(what text) RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF NOT pulse_internal.in_client_block() THEN
    RAISE EXCEPTION '% needs the transaction of a test', what USING
      ERRCODE = 'PU006', HINT = 'BEGIN before it, and ROLLBACK when the test has ended.';
  END IF;
END $$;
COMMENT ON FUNCTION pulse_tap.require_test(text) IS
  'For the kit itself: raises PU006 outside a transaction block.';

-- A rollback leaves a sequence unchanged. But ALTER SEQUENCE gives the sequence a new file, with
-- the same numbers, and the rollback brings the old file back. The option repeats the present value
-- of the sequence.
CREATE OR REPLACE FUNCTION pulse_tap.keep_sequence(sequence regclass) RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  EXECUTE (SELECT format('ALTER SEQUENCE %s INCREMENT BY %s', sequence, s.seqincrement)
             FROM pg_sequence AS s WHERE s.seqrelid = sequence);
END $$;
COMMENT ON FUNCTION pulse_tap.keep_sequence(regclass) IS
  'For the kit itself: makes the rollback give back the numbers that this transaction takes of a '
  'sequence from here on.';

CREATE OR REPLACE FUNCTION pulse_tap.keep_own_sequences() RETURNS void
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF current_setting('pulse_tap.keeps_sequences', true) = 'yes' THEN
    RETURN;
  END IF;
  PERFORM pulse_tap.keep_sequence(c.oid)
     FROM (SELECT s.oid FROM pg_class AS s
             JOIN pg_depend AS d ON d.objid = s.oid AND d.classid = 'pg_class'::regclass
              AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
             JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'pg_pulse'
            WHERE s.relkind = 'S' ORDER BY s.relname) AS c;
  PERFORM set_config('pulse_tap.keeps_sequences', 'yes', true);
END $$;
COMMENT ON FUNCTION pulse_tap.keep_own_sequences() IS
  'For the kit itself: keeps the sequences of pg_pulse, once in a transaction.';

CREATE OR REPLACE FUNCTION pulse_tap.keep_sequences(VARIADIC sequences regclass[] = '{}')
  RETURNS void
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  sequence regclass;
BEGIN
  PERFORM pulse_tap.require_test('keep_sequences()');
  PERFORM pulse_tap.keep_own_sequences();
  FOREACH sequence IN ARRAY sequences LOOP
    IF NOT EXISTS (SELECT FROM pg_sequence AS s WHERE s.seqrelid = sequence) THEN
      RAISE EXCEPTION '% is no sequence', coalesce(sequence::text, 'NULL') USING
        ERRCODE = 'PU004', HINT = 'pg_get_serial_sequence() names the sequence of a column.';
    END IF;
    PERFORM pulse_tap.keep_sequence(sequence);
  END LOOP;
END $$;
COMMENT ON FUNCTION pulse_tap.keep_sequences(regclass[]) IS
  'Makes the rollback of the test give back the numbers that the test takes from here on: of the '
  'sequences of pg_pulse, and of these sequences, which the caller must own. Other sessions that '
  'take a number of the sequences wait until the test has ended. freeze() and travel() call the '
  'function for the sequences of pg_pulse. Raises PU004 for a relation that is no sequence, PU006 '
  'outside a transaction block.';

-- pgTAP finds its own functions by the search_path, wherever pgTAP was installed.
CREATE OR REPLACE FUNCTION pulse_tap.report(fault text, description text) RETURNS text
  LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
  SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  home text := (SELECT n.nspname FROM pg_extension AS e
                  JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'pgtap');
  said text;
  diagnostics text := '';
BEGIN
  PERFORM pulse_tap.require_test('an assertion of pulse_tap');
  PERFORM set_config('search_path', format('%I, pg_catalog, pg_temp', home), true);
  EXECUTE format('SELECT %I.ok($1, $2)', home) INTO said USING fault IS NULL, description;
  IF fault IS NOT NULL THEN
    EXECUTE format('SELECT %I.diag($1)', home) INTO diagnostics USING fault;
    said := said || E'\n' || diagnostics;
  END IF;
  RETURN said;
END $$;
COMMENT ON FUNCTION pulse_tap.report(text, text) IS
  'For the kit itself: returns one line of TAP, with the fault as diagnostics; NULL: no fault. '
  'Raises PU006 outside a transaction block.';
