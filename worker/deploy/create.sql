-- The extension, and a role for each kind of program. None is a superuser, and none has the rights
-- of another: what a role may do stands in docs/operations.md, and what it may do to others in
-- SECURITY.md.
\getenv worker_password PULSE_WORKER_PASSWORD
CREATE EXTENSION pg_pulse;

-- The worker. Grant this role what the functions that run as tasks need.
CREATE ROLE runner LOGIN PASSWORD :'worker_password';
SELECT pulse.grant_worker('runner');

-- Programs that add jobs are members (GRANT shop TO web), and share what they added.
CREATE ROLE shop;
SELECT pulse.grant_producer('shop');

-- `pulse serve` may do nothing but become the roles of its tokens: ALTER ROLE pulse_http PASSWORD …
-- lets it in, and GRANT shop TO pulse_http lets a token add jobs.
CREATE ROLE pulse_http LOGIN NOINHERIT;
