-- pulse_citus.grant() grants the objects here along with the objects of the schema pulse, so no
-- role has a right before.

SELECT pulse_internal.close_new_objects('pg_pulse_citus');
