-- extension/schedule/cron.cpp: what a cron rule may say, and what a refusal says to do instead.
\ir support/setup.psql
SELECT plan(77);

CREATE FUNCTION runs_of(cron text) RETURNS timestamptz[] LANGUAGE sql AS $$
  SELECT ARRAY(SELECT r FROM pulse.cron_runs(cron, 'UTC', 400, '2027-12-30 12:34Z') AS r) $$;

-- --- what is taken ------------------------------------------------------------------------------

-- Each rule of crontab(5)'s plain grammar on the right is the one on the left.
SELECT is(runs_of(cron), runs_of(plain), format('%s is %s', cron, plain)) FROM (VALUES
  ('0 0 * * Monday', '0 0 * * 1'),
  ('0 0 * * SUNDAY,wednesday', '0 0 * * 0,3'),
  ('0 0 * * mon-Friday', '0 0 * * 1-5'),
  ('0 0 * September *', '0 0 * 9 *'),
  ('0 0 1 january-MAR *', '0 0 1 1-3 *'),
  ('0 0 * may *', '0 0 * 5 *'),
  ('0 0 * * FRI-MON', '0 0 * * 0,1,5,6'),
  ('0 0 * * SAT-SUN', '0 0 * * 0,6'),
  ('0 0 * * MON-SUN', '0 0 * * 0-6'),
  ('0 0 * * 5-7', '0 0 * * 0,5,6'),
  ('0 0 * * 7-2', '0 0 * * 0,1,2'),
  ('0 0 * * FRI-MON/2', '0 0 * * 0,5'),
  ('0 0 * * 0-7', '0 0 * * 0-6'),
  ('0 22-2 * * *', '0 0,1,2,22,23 * * *'),
  ('0 22-2/2 * * *', '0 0,2,22 * * *'),
  ('0 23-22 * * *', '0 0-23 * * *'),
  ('50-10 * * * *', '0-10,50-59 * * * *'),
  ('50-10/5 * * * *', '0,5,10,50,55 * * * *'),
  ('0 0 30-2 * *', '0 0 1,2,30,31 * *'),
  ('0 0 1 NOV-FEB *', '0 0 1 1,2,11,12 *'),
  ('5/15 * * * *', '5,20,35,50 * * * *'),
  ('0 8/4 * * *', '0 8,12,16,20 * * *'),
  ('0 0 10/7 * *', '0 0 10,17,24,31 * *'),
  ('0 0 1 3/4 *', '0 0 1 3,7,11 *'),
  ('0 0 * * 2/2', '0 0 * * 2,4,6'),
  ('0 0 * * TUE/2', '0 0 * * 2,4,6'),
  ('59/9 * * * *', '59 * * * *'),
  ('0/20,7 * * * *', '0,7,20,40 * * * *')) AS t (cron, plain);
SELECT is((runs_of(cron))[: 4], runs::timestamptz[], cron || ' is due at the last day') FROM (VALUES
  ('0 0 L * *', '{2027-12-31 00:00Z,2028-01-31 00:00Z,2028-02-29 00:00Z,2028-03-31 00:00Z}'),
  ('0 0 l 2 *', '{2028-02-29 00:00Z,2029-02-28 00:00Z,2030-02-28 00:00Z,2031-02-28 00:00Z}'),
  ('0 0 L,15 * *', '{2027-12-31 00:00Z,2028-01-15 00:00Z,2028-01-31 00:00Z,2028-02-15 00:00Z}'),
  ('0 0 30,L 4 *', '{2028-04-30 00:00Z,2029-04-30 00:00Z,2030-04-30 00:00Z,2031-04-30 00:00Z}'),
  ('0 0 L * MON', '{2027-12-31 00:00Z,2028-01-03 00:00Z,2028-01-10 00:00Z,2028-01-17 00:00Z}'))
  AS t (cron, runs);

-- --- what is refused ----------------------------------------------------------------------------

SELECT ok(r.code = 'PU004' AND r.hint LIKE instead, format('%s is refused: %s', cron, r.hint))
  FROM (VALUES
    ('0 0 15W * *', 'Name days, or MON-FRI, and let the task ask %'),
    ('0 0 LW * *', 'Name days, or MON-FRI, and let the task ask %'),
    ('0 0 * * FRI#2', 'Name the weekday alone, and let the task ask which one %'),
    ('0 0 * * 5#2', 'Name the weekday alone, and let the task ask which one %'),
    ('0 0 ? * MON', 'Write * instead of ?.'),
    ('0 0 1 * ?', 'Write * instead of ?.'),
    ('H 0 * * *', 'Write a value of your own instead of H%'),
    ('H(0-29)/10 * * * *', 'Write a value of your own instead of H%'),
    ('0~59 * * * *', 'Write a value: none is chosen at random.'),
    ('0 0 L-3 * *', 'L is the last day of the month, and stands alone. %'),
    ('0 0 * * 5L', 'L is the last day of the month, and stands alone. %'),
    ('0 0 * * L', 'L is the last day of the month, and stands alone. %'),
    ('0 0 LL * *', 'L is the last day of the month, and stands alone. %'),
    ('@reboot', 'A schedule has due times only: %'),
    ('@every 5m', 'Leave cron out, and give every => %'),
    ('@often', 'Use five fields, or @hourly, %'),
    ('@dailyx', 'Use five fields, or @hourly, %'),
    ('TZ=Europe/Berlin 0 4 * * *', 'Name the zone in time_zone%'),
    ('CRON_TZ=Europe/Berlin 0 4 * * *', 'Name the zone in time_zone%'),
    ('30 0 4 * * *', 'They are minute, hour, %: no second (every => %'),
    ('0 0 12 ? * MON *', 'They are minute, hour, %: no second (every => %'),
    ('0 4 * *', 'They are minute, hour, %'),
    ('0 4 * * MON TUE', 'They are minute, hour, %'),
    ('60 * * * *', 'Use *, or values from 0 to 59, %'),
    ('0 24 * * *', 'Use *, or values from 0 to 23, %'),
    ('0 0 0 * *', 'Use *, or values from 1 to 31, %'),
    ('0 0 32 * *', 'Use *, or values from 1 to 31, %'),
    ('0 0 1 13 *', 'Use *, or values from 1 to 12, %'),
    ('0 0 1 0 *', 'Use *, or values from 1 to 12, %'),
    ('0 0 * * 8', 'Use *, or values from 0 to 7, %'),
    ('*/0 * * * *', 'Use *, or values from 0 to 59, ranges a-b, steps */n, a/n and a-b/n, %'),
    ('0 0 * * MONX', 'Use *, or values %'),
    ('0 0 * * MONDA', 'Use *, or values %'),
    ('0 0 * WED *', 'Use *, or values from 1 to 12, %'),
    ('0 JAN * * *', 'Use *, or values from 0 to 23, %'),
    ('0 0 * * */MON', 'Use *, or values %'),
    ('1, * * * *', 'Use *, or values %'), (',1 * * * *', 'Use *, or values %'),
    ('-5 * * * *', 'Use *, or values %'), ('5- * * * *', 'Use *, or values %'),
    ('5-*/2 * * * *', 'Use *, or values %'), ('*-5 * * * *', 'Use *, or values %'),
    ('1/2/3 * * * *', 'Use *, or values %'), ('1 .5 * * *', 'Use *, or values %'))
    AS t (cron, instead),
    LATERAL refusal_of(format('SELECT pulse.cron_runs(%L)', cron)) AS r;
SELECT * FROM finish();
ROLLBACK;
