-- Functions of this version need the library of this version. An older library is loaded in open
-- sessions, in a server that preloads the library and was not restarted, and where only the files
-- of the SQL are new.
DO $$
DECLARE
  own text := (SELECT e.extversion FROM pg_extension AS e WHERE e.extname = 'pg_pulse');
BEGIN
  IF string_to_array(pulse.version(), '.')::int[] < string_to_array(own, '.')::int[] THEN
    RAISE EXCEPTION 'the library of pg_pulse that this session has loaded is too old' USING
      ERRCODE = 'object_not_in_prerequisite_state',
      DETAIL = format('It is of version %s, and the SQL of %s.', pulse.version(), own),
      HINT = format('Install the files of %s. Then restart the server if it preloads pg_pulse, '
                    'else connect anew.', own);
  END IF;
END $$;
