-- The schema belongs to the extension, so one of this name is an error.
CREATE SCHEMA pulse_tap;
COMMENT ON SCHEMA pulse_tap IS
  'Functions for pgTAP tests of code with jobs: assertions, time, workers.';
