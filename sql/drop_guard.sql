-- DROP EXTENSION deletes every job, so it is refused while there are live ones. A hook of the
-- library refuses it (extension/install/drop_guard.cpp); the event trigger loads the library into
-- a session that is about to drop something.

CREATE OR REPLACE FUNCTION pulse._guard_drop() RETURNS event_trigger
  LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'pulse_guard_drop';
COMMENT ON FUNCTION pulse._guard_drop() IS
  'Loads the library, which refuses to drop live jobs (PU009) while pulse.allow_drop is off.';

-- There is no CREATE OR REPLACE for an event trigger. One of this name that does not belong to the
-- extension is an error.
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_event_trigger AS t
                   JOIN pg_catalog.pg_depend AS d ON d.objid = t.oid AND d.deptype = 'e'
                  WHERE t.evtname = 'pg_pulse_guard_drop'
                    AND d.classid = 'pg_catalog.pg_event_trigger'::regclass) THEN
    CREATE EVENT TRIGGER pg_pulse_guard_drop ON ddl_command_start
      WHEN TAG IN ('DROP EXTENSION', 'DROP SCHEMA', 'DROP OWNED')
      EXECUTE FUNCTION pulse._guard_drop();
  END IF;
END $$;
COMMENT ON EVENT TRIGGER pg_pulse_guard_drop IS
  'Refuses DROP EXTENSION pg_pulse while there are live jobs.';
