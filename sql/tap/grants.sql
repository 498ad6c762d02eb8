-- The kit moves time and plays deaths, so no role has it unless a grant names that role.

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA pulse_tap FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA pulse_tap FROM PUBLIC;
