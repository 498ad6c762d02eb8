-- Words of the domain for tests. Created in the test's transaction, so they vanish with it.

-- --- what is given ------------------------------------------------------------------------------

CREATE FUNCTION given_worker(name text = 'ann', tasks text[] = NULL) RETURNS bigint
  LANGUAGE sql AS $$ SELECT (pulse.register_worker(name, tasks)).id $$;

CREATE FUNCTION given_job(
    identifier text = 'mail', queue_name text = NULL, max_attempts int = NULL, job_key text = NULL,
    priority int = NULL)
  RETURNS bigint
  LANGUAGE sql AS $$
  SELECT (pulse.add_job(identifier, queue_name => queue_name, max_attempts => max_attempts,
                        job_key => job_key, priority => priority)).id
$$;

-- Adds a job and lets this worker claim it.
CREATE FUNCTION given_claimed_job(
    worker_id bigint, identifier text = 'mail', queue_name text = NULL, max_attempts int = NULL,
    job_key text = NULL)
  RETURNS pulse.claimed_job
  LANGUAGE plpgsql AS $$
DECLARE
  added bigint := given_job(identifier, queue_name, max_attempts, job_key);
  answer record;
BEGIN
  PERFORM promote_queues();
  SELECT * INTO answer FROM pulse.claim_job(worker_id, added);
  IF answer.reason <> 'claimed' THEN
    RAISE EXCEPTION 'job % cannot be claimed: %', added, answer.reason;
  END IF;
  RETURN answer.job;
END $$;

-- The moment as pg_pulse sees it from now on: so long after the real one.
CREATE FUNCTION travel(how_far interval) RETURNS void
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('pulse.clock_offset', extract(epoch FROM how_far) || 's', true);
END $$;

-- What a commit's marks make the next claim do; a test that never commits asks for it.
CREATE FUNCTION promote_queues() RETURNS void
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pulse_internal.reconcile_queues();
  -- Other tests may have left marks of queues that were rolled back.
  WHILE pulse_internal.promote_marked(256) LOOP END LOOP;
END $$;

-- --- what is seen -------------------------------------------------------------------------------

CREATE FUNCTION state_of(job_id bigint) RETURNS text
  LANGUAGE sql AS $$
  SELECT coalesce((SELECT state::text FROM pulse.job WHERE id = job_id),
                  (SELECT state::text FROM pulse.finished_job WHERE id = job_id), 'gone')
$$;

CREATE FUNCTION claimed_ids(worker_id bigint, max_jobs int = 1, tasks text[] = NULL,
                            forbidden_flags text[] = NULL, start_jobs int = NULL)
  RETURNS bigint[]
  LANGUAGE sql AS $$
  SELECT coalesce(array_agg(c.id ORDER BY c.ordinality), '{}')
    FROM pulse.claim(worker_id, max_jobs, tasks, forbidden_flags, start_jobs)
         WITH ORDINALITY AS c
$$;

-- How long a job was told to wait when it went back, in full seconds: e is 3, its square 7.
CREATE FUNCTION backoff_of(job_id bigint) RETURNS int
  LANGUAGE sql AS $$
  SELECT round(extract(epoch FROM run_at - updated_at))::int FROM pulse.job WHERE id = job_id
$$;

-- How many rows a table or view of ours has; NULL when there is no such thing.
CREATE FUNCTION rows_of(name text) RETURNS bigint
  LANGUAGE plpgsql AS $$
DECLARE
  counted bigint;
BEGIN
  EXECUTE format('SELECT count(*) FROM pulse.%I', name) INTO counted;
  RETURN counted;
EXCEPTION WHEN undefined_table THEN
  RETURN NULL;
END $$;

-- Everything that the tables say, as one value to compare.
CREATE FUNCTION contents() RETURNS text
  LANGUAGE sql AS $$
  SELECT md5(concat_ws('|',
    (SELECT string_agg(md5(t::text), ',' ORDER BY t.id) FROM pulse.job AS t),
    (SELECT string_agg(md5(t::text), ',' ORDER BY t.id) FROM pulse.finished_job AS t),
    (SELECT string_agg(md5(t::text), ',' ORDER BY t.job_id, t.token) FROM pulse.attempt AS t),
    (SELECT string_agg(md5(t::text), ',' ORDER BY t.id) FROM pulse.worker AS t),
    (SELECT string_agg(md5(t::text), ',' ORDER BY t.worker_id) FROM pulse.heartbeat AS t),
    (SELECT string_agg(md5(t::text), ',' ORDER BY t.queue_name) FROM pulse.queue AS t),
    (SELECT string_agg(md5(t::text), ',' ORDER BY t.queue_name, t.job_id)
       FROM pulse.queue_pause AS t),
    (SELECT string_agg(md5(t::text), ',' ORDER BY t.identifier) FROM pulse.task AS t)))
$$;

-- --- what is expected ---------------------------------------------------------------------------

CREATE TYPE refusal AS (code text, message text, detail text, hint text);

-- How a statement ends, as somebody else if a role is given; what it did stays when it succeeds.
CREATE FUNCTION refusal_of(statement text, role name = NULL) RETURNS refusal
  LANGUAGE plpgsql AS $$
DECLARE
  seen refusal;
BEGIN
  IF role IS NOT NULL THEN
    PERFORM set_config('role', role, true);
  END IF;
  EXECUTE statement;
  PERFORM set_config('role', 'none', true);
  RETURN ROW('00000', '', '', '')::refusal;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS seen.code = RETURNED_SQLSTATE, seen.message = MESSAGE_TEXT,
    seen.detail = PG_EXCEPTION_DETAIL, seen.hint = PG_EXCEPTION_HINT;
  RETURN seen;
END $$;

-- The rows of a query, one line each: text compares across collations and sizes of integers.
CREATE FUNCTION lines(query text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  answer text;
BEGIN
  EXECUTE format('SELECT string_agg(q::text, E''\n'') FROM (%s) AS q', query) INTO answer;
  RETURN answer;
END $$;

-- One assertion: the query returns this row, written as ROW(…), or these lines.
CREATE FUNCTION answers(query text, expected anyelement, description text) RETURNS text
  LANGUAGE sql AS $$ SELECT is(lines(query), expected::text, description) $$;

-- One assertion: the statement raises this code and leaves the tables alone. An error of ours also
-- has a lower-case primary text without a full stop, and a hint.
CREATE FUNCTION refuses(statement text, code text, description text, role name = NULL)
  RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  before text := contents();
  seen refusal := refusal_of(statement, role);
  unchanged boolean := contents() = before;
  well_told boolean := code NOT LIKE 'PU%'
    OR (seen.message ~ '^[^A-Z]' AND seen.message !~ '\.$' AND seen.hint <> '');
BEGIN
  RETURN ok(seen.code = code AND unchanged AND well_told, description)
    || CASE WHEN seen.code = code AND unchanged AND well_told THEN '' ELSE E'\n' || diag(format(
         E'expected %s, got %s: %s\ndetail: %s\nhint: %s\ntables unchanged: %s', code, seen.code,
         seen.message, seen.detail, seen.hint, unchanged)) END;
END $$;

-- One assertion: the statement succeeds and leaves the tables alone.
CREATE FUNCTION changes_nothing(statement text, description text) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  before text := contents();
BEGIN
  EXECUTE statement;
  RETURN is(contents(), before, description);
END $$;

-- Six assertions about a function: what the contract says of its signature. A name without a
-- schema is one of the schema pulse.
CREATE FUNCTION expect_function(
    name text, arguments text, result text, volatility text, security text)
  RETURNS SETOF text
  LANGUAGE plpgsql AS $$
DECLARE
  found pg_proc;
BEGIN
  SELECT p.* INTO found FROM pg_proc AS p
   WHERE format('%s.%s', p.pronamespace::regnamespace, p.proname)
           IN (expect_function.name, 'pulse.' || expect_function.name);
  RETURN NEXT is(pg_get_function_arguments(found.oid), arguments, name || ' takes its arguments');
  RETURN NEXT is(CASE found.prokind WHEN 'p' THEN 'procedure' ELSE pg_get_function_result(found.oid)
                 END, result, name || ' returns ' || result);
  RETURN NEXT is(CASE found.provolatile WHEN 'v' THEN 'volatile' WHEN 's' THEN 'stable'
                   ELSE 'immutable' END, volatility, name || ' is ' || volatility);
  RETURN NEXT is(CASE WHEN found.prosecdef THEN 'definer' ELSE 'invoker' END, security,
                 name || ' has the rights of its ' || security);
  RETURN NEXT ok(NOT has_function_privilege('public', found.oid, 'EXECUTE'),
                 'PUBLIC cannot execute ' || name);
  RETURN NEXT isnt(obj_description(found.oid, 'pg_proc'), NULL, name || ' has a comment');
END $$;
