-- The kit moves time and plays deaths, so no role may use the kit unless a grant names it.

SELECT pulse_internal.close_new_objects('pg_pulse_tap');
