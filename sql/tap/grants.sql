-- The kit moves time and plays deaths, so no role has it unless a grant names that role.

SELECT pulse_internal.close_new_objects('pg_pulse_tap');
