-- pulse.grant_producer, grant_operator and grant_observer grant what is here along with what is in
-- the schema pulse, so no role has anything before.

SELECT pulse_internal.close_new_objects('pg_pulse_graphile');
