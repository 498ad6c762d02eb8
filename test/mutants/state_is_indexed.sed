# An index asks for the state, so no claim can be a HOT update.
# in: sql
# red: cost life
s/^CREATE INDEX job_claim_idx/CREATE INDEX job_state_idx ON pulse.job (state);\n&/
