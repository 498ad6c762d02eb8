-- pulse.grant_producer, grant_operator and grant_observer grant what is here along with what is in
-- the schema pulse, so no role has anything before.

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA graphile_worker FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA graphile_worker FROM PUBLIC;
REVOKE ALL ON TYPE graphile_worker.job_spec FROM PUBLIC;
