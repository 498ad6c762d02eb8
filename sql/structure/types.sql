-- States, and the rows that functions take and return. Enum values are only appended, because dumps
-- contain them.

CREATE TYPE pulse.job_state AS ENUM ('ready', 'parked', 'running');

CREATE TYPE pulse.finished_state AS ENUM (
  'completed', 'failed', 'quarantined', 'cancelled', 'expired');

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
  created_at     timestamptz,
  scheduled_for  timestamptz,
  parents        json,
  traceparent    text
);

CREATE TYPE pulse.job_outcome AS (id bigint, outcome text);

CREATE TYPE pulse_internal.ending AS (
  id       bigint,
  outcome  text,
  error    text,
  retry    boolean,
  retry_in interval,
  payload  json,
  cause    text
);

CREATE TYPE pulse_internal.sweep_result AS (
  workers_lost        int,
  jobs_requeued       int,
  jobs_failed         int,
  jobs_quarantined    int,
  jobs_timed_out      int,
  jobs_stalled        int,
  jobs_skipped_locked int,
  skipped_time        interval
);

CREATE TYPE pulse_internal.explanation AS (
  kind       text,
  blocker    text,
  detail     text,
  until      timestamptz,
  job_ids    bigint[],
  worker_ids bigint[]
);
