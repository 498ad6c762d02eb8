-- What each poll of an operator reads beside 100,000 jobs of 300 tasks and 20,000 queues: the
-- views, `pulse top`, each page and /metrics of `pulse serve`. test/bench/polls measures beside
-- millions.
\set jobs 100000
\ir ../support/polls.sql
CREATE TABLE cost.poll (name text, buffers numeric, milliseconds numeric, statements int);
\setenv PGDATABASE :DBNAME
\! "$COST_POLLS" | psql -Xq -c 'COPY cost.poll FROM STDIN'
INSERT INTO cost.figure
SELECT 'screen_' || coalesce(nullif(trim('_' FROM regexp_replace(p.name, '\W+', '_', 'g')), ''),
                             'start') || '_buffers', p.buffers
  FROM cost.poll AS p;
