-- Nothing is granted to PUBLIC, neither by us nor by the defaults of the server.

REVOKE ALL ON ALL TABLES IN SCHEMA pulse FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA pulse FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA pulse FROM PUBLIC;
REVOKE ALL ON TYPE pulse.job_state, pulse.finished_state, pulse.job_spec, pulse.claimed_job,
  pulse.job_outcome, pulse._ending, pulse._sweep_result FROM PUBLIC;
