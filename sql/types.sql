-- The words of the queue as types. Values are only ever appended: they are dumped and restored.

CREATE TYPE pulse.job_state AS ENUM ('ready', 'parked', 'running');
COMMENT ON TYPE pulse.job_state IS
  'where a live job stands: ready (due or future, on the claim index), parked (held behind its '
  'queue), running';

CREATE TYPE pulse.finished_state AS ENUM ('completed', 'failed', 'quarantined', 'cancelled');
COMMENT ON TYPE pulse.finished_state IS 'how a job ended';

CREATE TYPE pulse.job_spec AS (
  identifier   text,
  payload      json,
  queue_name   text,
  run_at       timestamptz,
  max_attempts int,
  job_key      text,
  priority     int,
  flags        text[]
);
COMMENT ON TYPE pulse.job_spec IS 'one job to add, the argument of add_jobs';

CREATE TYPE pulse.claimed_job AS (
  id             bigint,
  token          bigint,
  identifier     text,
  payload        json,
  queue_name     text,
  priority       smallint,
  run_at         timestamptz,
  attempts       smallint,
  max_attempts   smallint,
  crashes        smallint,
  job_key        text,
  flags          text[],
  checkpoint     json,
  last_error     text,
  recovered      text,
  timeout        interval,
  stall_timeout  interval,
  on_unreachable text,
  handler        regprocedure,
  created_at     timestamptz
);
COMMENT ON TYPE pulse.claimed_job IS
  'a job as handed to a worker, with the token that names its claim';

CREATE TYPE pulse.job_outcome AS (id bigint, outcome text);
COMMENT ON TYPE pulse.job_outcome IS
  'the answer of a plural call for one job: accepted, stale (not this claim''s any more) or '
  'busy (ask again)';

CREATE TYPE pulse._ending AS (
  id       bigint,
  outcome  text,
  error    text,
  retry    boolean,
  retry_in interval,
  payload  json,
  cause      text,
  token    bigint
);
COMMENT ON TYPE pulse._ending IS
  'how one attempt ends, the argument of _end_attempts; token NULL: whichever attempt runs';

CREATE TYPE pulse._sweep_result AS (
  workers_lost        int,
  jobs_requeued       int,
  jobs_failed         int,
  jobs_quarantined    int,
  jobs_timed_out      int,
  jobs_stalled        int,
  jobs_skipped_locked int,
  skipped_time        interval
);
COMMENT ON TYPE pulse._sweep_result IS 'what a sweep did';
