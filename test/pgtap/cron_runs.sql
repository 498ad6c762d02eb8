-- extension/schedule: the due times of cron rules, against a walk over every minute of two years.
-- PULSE_CRON_RULES says how many random rules (15), PULSE_SEED repeats a run.
\ir support/setup.psql
SELECT plan(41);

SELECT expect_function('cron_runs',
  'cron text, time_zone text DEFAULT ''UTC''::text, max_runs integer DEFAULT 5, '
  'after timestamp with time zone DEFAULT NULL::timestamp with time zone',
  'SETOF timestamp with time zone', 'stable', 'definer');

CREATE FUNCTION runs(cron text, zone text, since text, max_runs int) RETURNS text
  LANGUAGE sql SET timezone = 'UTC' AS $$
  SELECT string_agg(to_char(r, 'DD HH24:MI'), ', ')
    FROM pulse.cron_runs(cron, zone, max_runs, since::timestamptz) AS r
$$;

-- In 2026 Berlin leaves out 02:00 to 03:00 on 29 March, and repeats it on 25 October (UTC + 2 h,
-- then + 1 h). Debian's cron has these rules in its manual.
SELECT is(runs('30 2 * * *', 'Europe/Berlin', '2026-03-27', 4),
  '27 01:30, 28 01:30, 29 01:00, 30 00:30',
  'a job of fixed time in the skipped hour runs right after it');
SELECT is(runs('0,15,30,45 2 * * *', 'Europe/Berlin', '2026-03-28 12:00', 2),
  '29 01:00, 30 00:00', 'what the clock skips runs once, together');
SELECT is(runs('0 3 * * *', 'Europe/Berlin', '2026-03-28 12:00', 2), '29 01:00, 30 01:00',
  'the first minute after the gap runs once');
SELECT is(runs('30 * * * *', 'Europe/Berlin', '2026-03-29 00:00', 3),
  '29 00:30, 29 01:30, 29 02:30',
  'an hour of * has nothing to make up for');
SELECT is(runs('*/15 2 * * *', 'Europe/Berlin', '2026-03-28 12:00', 2), '30 00:00, 30 00:15',
  'nor has a minute of *');
SELECT is(runs('30 2 * * *', 'Europe/Berlin', '2026-10-24 12:00', 2), '25 00:30, 26 01:30',
  'a job of fixed time in the repeated hour runs the first time only');
SELECT is(runs('30 * * * *', 'Europe/Berlin', '2026-10-25 00:00', 3),
  '25 00:30, 25 01:30, 25 02:30',
  'an hour of * runs both times');
SELECT is(runs('*/30 2 * * *', 'Europe/Berlin', '2026-10-24 12:00', 5),
  '25 00:00, 25 00:30, 25 01:00, 25 01:30, 26 01:00', 'so does a minute of *');
SELECT is(runs('30 2 * * 0', 'Europe/Berlin', '2026-03-23', 2), '29 01:00, 05 00:30',
  'a skipped time belongs to its own day');
SELECT is(runs('15 0 * * *', 'America/Sao_Paulo', '2018-11-03 00:00', 2), '03 03:15, 04 03:00',
  'a gap at midnight is made up for on the day that it opens');
SELECT is(runs('0 12 * * *', 'Pacific/Apia', '2011-12-29 00:00', 3), '29 22:00, 30 10:00, 30 22:00',
  'a day that a zone leaves out is made up for when the next one begins');
SELECT is(runs('0 12 30 12 *', 'Pacific/Apia', '2011-12-29 00:00', 1), '30 10:00',
  'also by a rule for that day alone');
SELECT is(runs('10 2 * * *', 'Australia/Lord_Howe', '2026-10-02 20:00', 2), '03 15:30, 04 15:10',
  'a gap of half an hour');

SELECT is(runs('0 0 13 * 5', 'UTC', '2026-11-01', 5),
  '06 00:00, 13 00:00, 20 00:00, 27 00:00, 04 00:00', 'of two day fields either may match');
SELECT is(runs('0 0 */2 * 5', 'UTC', '2026-11-01', 3), '13 00:00, 27 00:00, 11 00:00',
  'a day field that begins with * must match too');
SELECT is(runs('0 0 * * 7', 'UTC', '2026-11-01', 2), runs('0 0 * * sun', 'UTC', '2026-11-01', 2),
  '7 is Sunday');
SELECT is(runs('0 0 * JAN-Mar mon-FRI', 'UTC', '2026-11-01', 1), '01 00:00', 'names of any case');
SELECT is(runs('58-59,0-10/5 6 * * *', 'UTC', '2026-11-01', 5),
  '01 06:00, 01 06:05, 01 06:10, 01 06:58, 01 06:59', 'lists, ranges and steps');
SELECT is(runs(E' \t0 0  1 1 * ', 'UTC', '2026-11-01', 1), runs('@yearly', 'UTC', '2026-11-01', 1),
  'blanks count for nothing');
SELECT is(runs(nickname, 'UTC', '2026-11-01', 2), runs(fields, 'UTC', '2026-11-01', 2),
          nickname || ' is ' || fields)
  FROM (VALUES ('@hourly', '0 * * * *'), ('@daily', '0 0 * * *'), ('@weekly', '0 0 * * 0'),
               ('@monthly', '0 0 1 * *')) AS n (nickname, fields);
SELECT is(runs('0 0 29 2 *', 'UTC', '2096-03-01', 1), '29 00:00', 'a rule that is due in 2104');
SELECT is(runs('* * * * *', 'UTC', '2026-11-01 00:00:00', 1), '01 00:01', 'after is not included');

CREATE FUNCTION refused_rule(cron text, pattern text, zone text = 'UTC') RETURNS text
  LANGUAGE sql AS $$
  SELECT throws_like(format('SELECT pulse.cron_runs(%L, %L, 5, ''2026-11-01'')', cron, zone),
                     pattern, coalesce(cron, 'NULL') || ' in ' || zone || ' is refused')
$$;
SELECT refused_rule(cron, pattern)
  FROM (VALUES ('@reboot', '%@reboot%not known'),
               ('0 0 L-2 * *', '%''0 0 L-2 * *'' has an unknown day%'),
               ('0 0 * * * 2026', '%more than five fields'), ('60 0 * * *', '%unknown minute'),
               ('0 22-24 * * *', '%unknown hour'), ('0 0 30 2 *', '%is never due'),
               ('', '%fewer than five fields'), ('0 0 * * ', '%fewer than five fields'))
    AS r (cron, pattern);
SELECT refused_rule('* * * * *', 'time zone ''Europe/Berlin2''%', 'Europe/Berlin2');

-- --- every minute of two years -------------------------------------------------------------------

-- psql 14 knows no \getenv.
\set rules `echo "${PULSE_CRON_RULES:-15}"`
\set seed `echo "${PULSE_SEED:-}"`
SELECT coalesce(nullif(:'seed', '')::int, (random() * 1000000)::int) AS seed \gset
SELECT setseed(:seed / 1000000.0) IS NOT NULL AS seeded \gset
\echo # PULSE_SEED=:seed

-- One random field: its text, and its values as bits, made side by side.
CREATE FUNCTION random_field(lowest int, highest int, OUT written text, OUT bits bigint)
  LANGUAGE plpgsql AS $$
DECLARE
  width int := highest - lowest + 1;
  low int := lowest + floor(random() * width);
  high int := low + floor(random() * (highest - low + 1));
  step int := 1 + floor(random() * width / 2);
  -- 7 is another name of weekday 0.
  period int := CASE highest WHEN 7 THEN 7 ELSE width END;
  parts int := CASE WHEN random() < 0.3 THEN 3 ELSE 1 END;
  part text;
  members int[];
BEGIN
  bits := 0;
  FOR i IN 1..parts LOOP
    CASE floor(random() * CASE highest WHEN 31 THEN 9 ELSE 8 END)
      WHEN 0 THEN part := '*'; members := ARRAY(SELECT generate_series(lowest, highest));
      WHEN 1 THEN part := '*/' || step;
        members := ARRAY(SELECT generate_series(lowest, highest, step));
      WHEN 2 THEN part := low || '-' || high || '/' || step;
        members := ARRAY(SELECT generate_series(low, high, step));
      WHEN 3 THEN part := low || '-' || high; members := ARRAY(SELECT generate_series(low, high));
      WHEN 4 THEN part := high || '-' || low || '/' || step;
        members := ARRAY(SELECT lowest + (high - lowest + s) % period FROM generate_series(
          0, low - high + CASE WHEN low < high THEN period ELSE 0 END, step) AS s);
      WHEN 5 THEN part := high || '-' || low;
        members := ARRAY(SELECT lowest + (high - lowest + s) % period FROM generate_series(
          0, low - high + CASE WHEN low < high THEN period ELSE 0 END) AS s);
      WHEN 6 THEN part := low || '/' || step;
        members := ARRAY(SELECT lowest + (low - lowest + s) % period FROM generate_series(
          0, lowest + period - 1 - low + CASE WHEN low = 7 AND highest = 7 THEN 7 ELSE 0 END,
          step) AS s);
      WHEN 8 THEN part := 'L'; members := ARRAY[0];
      ELSE part := high::text; members := ARRAY[high];
    END CASE;
    written := concat_ws(',', written, part);
    bits := bits | (SELECT bit_or(1::bigint << m) FROM unnest(members) AS m);
  END LOOP;
END $$;

CREATE TEMP TABLE minute (t timestamptz, local timestamp, highest timestamp, before timestamp);
CREATE TEMP TABLE candidate (t timestamptz, is_fixed boolean, minute bigint, hour bigint,
                             day bigint, month bigint, weekday bigint);

-- What the contract says: L is local, H is highest.
CREATE FUNCTION walk(zone text, since timestamptz) RETURNS void
  LANGUAGE plpgsql AS $$
DECLARE
  is_abbreviation boolean := EXISTS (SELECT FROM pg_timezone_abbrevs AS a
                                      WHERE lower(a.abbrev) = lower(zone));
BEGIN
  -- AT TIME ZONE takes the abbreviation where a zone has the same name.
  PERFORM set_config('timezone', zone, true);
  TRUNCATE minute, candidate;
  INSERT INTO minute
  SELECT w.t, w.local, max(w.local) OVER ahead, max(w.local) OVER behind
    FROM (SELECT g, date_trunc('minute', CASE WHEN is_abbreviation THEN g::timestamp
                                           ELSE g AT TIME ZONE zone END)
            FROM generate_series(since - interval '48 h', since + interval '17520 h',
                                 interval '1 min') AS g) AS w (t, local)
  WINDOW ahead AS (ORDER BY w.t),
         behind AS (ORDER BY w.t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING);
  INSERT INTO candidate
  SELECT m.t, m.is_fixed, 1::bigint << extract(minute FROM m.local)::int,
         1::bigint << extract(hour FROM m.local)::int,
         1::bigint << extract(day FROM m.local)::int
           | CASE WHEN extract(day FROM m.local + interval '1 day') = 1 THEN 1 ELSE 0 END,
         1::bigint << extract(month FROM m.local)::int, 1::bigint << extract(dow FROM m.local)::int
    FROM (SELECT t, local, false AS is_fixed FROM minute WHERE t > since
          UNION ALL
          SELECT t, g, true FROM minute, generate_series(before + interval '1 min', highest,
                                                         interval '1 min') AS g
           WHERE t > since) AS m;
  PERFORM set_config('timezone', 'UTC', true);
END $$;

CREATE FUNCTION difference(zone text, since timestamptz) RETURNS text
  LANGUAGE plpgsql AS $$
DECLARE
  most CONSTANT int := 100000;
  fields record;
  ours timestamptz[];
  expected timestamptz[];
  cron text;
BEGIN
  SELECT m.written AS minute, m.bits AS minutes, h.written AS hour, h.bits AS hours,
         d.written AS day, d.bits AS days, o.written AS month, o.bits AS months,
         w.written AS weekday, w.bits | (w.bits >> 7) AS weekdays INTO fields
    FROM random_field(0, 59) AS m, random_field(0, 23) AS h, random_field(1, 31) AS d,
         random_field(1, 12) AS o, random_field(0, 7) AS w;
  cron := concat_ws(' ', fields.minute, fields.hour, fields.day, fields.month, fields.weekday);
  expected := ARRAY(
    SELECT DISTINCT c.t FROM candidate AS c
     WHERE c.is_fixed = (fields.minute !~ '^\*' AND fields.hour !~ '^\*')
       AND c.minute & fields.minutes <> 0 AND c.hour & fields.hours <> 0
       AND c.month & fields.months <> 0
       AND CASE WHEN fields.day ~ '^\*' OR fields.weekday ~ '^\*'
             THEN c.day & fields.days <> 0 AND c.weekday & fields.weekdays <> 0
             ELSE c.day & fields.days <> 0 OR c.weekday & fields.weekdays <> 0 END
     ORDER BY 1 LIMIT most);
  BEGIN
    ours := ARRAY(SELECT r FROM pulse.cron_runs(cron, zone, most, since) AS r
                   WHERE r <= since + interval '17520 h');
  EXCEPTION WHEN SQLSTATE 'PU004' THEN
    ours := '{}';
  END;
  RETURN CASE WHEN ours IS DISTINCT FROM expected THEN format(
    '%s in %s since %s: %s runs instead of %s, first %s', cron, zone, since, cardinality(ours),
    cardinality(expected),
    (SELECT min(x) FROM (SELECT unnest(ours) EXCEPT SELECT unnest(expected)
                         UNION (SELECT unnest(expected) EXCEPT SELECT unnest(ours))) AS d (x))) END;
END $$;

-- Ten rules share the walk of a zone: first of these, then of any.
CREATE FUNCTION differences(rules int) RETURNS SETOF text
  LANGUAGE plpgsql AS $$
DECLARE
  zones text[] := ARRAY['Europe/Berlin', 'Australia/Lord_Howe'] || ARRAY(
    SELECT z.name FROM pg_timezone_names AS z
     WHERE z.name !~ '^posix|^right|localtime|posixrules' ORDER BY random());
  zone text;
  since timestamptz;
BEGIN
  FOR i IN 1..greatest(rules / 10, 1) LOOP
    zone := zones[1 + (i - 1) % cardinality(zones)];
    since := make_timestamptz(1971 + floor(random() * 65)::int, 1, 1, 0, 0, 0, 'UTC');
    PERFORM walk(zone, since);
    RETURN QUERY SELECT d FROM generate_series(1, 10), LATERAL difference(zone, since) AS d
                  WHERE d IS NOT NULL;
  END LOOP;
END $$;
SELECT is(ARRAY(SELECT differences(:rules)), '{}'::text[],
  'the due times of random rules are those of the walk');
SELECT * FROM finish();
ROLLBACK;
