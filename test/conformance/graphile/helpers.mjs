// What Graphile Worker's tests share, for a database in which the extension pg_pulse_graphile has
// its schema. Its tests set jobs up by writing into private tables. Here triggers on the views play
// those writes with the tables of pg_pulse; nothing else is changed.
import { jest } from '@jest/globals';
import pg from 'pg';

export const HOUR = 60 * 60 * 1000;
export const ESCAPED_GRAPHILE_WORKER_SCHEMA = '"graphile_worker"';

const database = `graphile_tests_${process.pid}`;
const TEST_CONNECTION_STRING = `postgres:///${database}`;

async function connected(connectionString, use) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

// A job is locked by a worker, has failed for good, or gets another time.
const PLAY_WRITES = `
CREATE EXTENSION pg_pulse_graphile CASCADE;
CREATE FUNCTION play_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.locked_by IS NOT NULL THEN
    UPDATE pulse.job AS j
       SET state = 'running', claimed_at = NEW.locked_at, token = nextval('pulse.token_seq'),
           worker_id = coalesce((SELECT w.id FROM pulse.worker AS w WHERE w.name = NEW.locked_by),
                                (SELECT r.id FROM pulse.register_worker(NEW.locked_by) AS r))
     WHERE j.id = NEW.id;
  ELSIF NEW.attempts >= NEW.max_attempts THEN
    PERFORM pulse.permanently_fail_jobs(ARRAY[NEW.id], NEW.last_error);
  ELSIF NEW.run_at <> OLD.run_at THEN
    PERFORM pulse.reschedule_jobs(ARRAY[NEW.id], run_at => NEW.run_at);
  END IF;
  SELECT * INTO NEW FROM graphile_worker._private_jobs AS j WHERE j.id = OLD.id;
  RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER refuse INSTEAD OF UPDATE ON graphile_worker._private_jobs
  FOR EACH ROW EXECUTE FUNCTION play_write();
-- A queue is locked because a job of it is.
DROP TRIGGER refuse ON graphile_worker._private_job_queues;
CREATE TRIGGER refuse INSTEAD OF UPDATE ON graphile_worker._private_job_queues
  FOR EACH ROW EXECUTE FUNCTION graphile_worker._private_leave();`;

beforeAll(async () => {
  await connected('postgres:///postgres', (client) => client.query(`CREATE DATABASE ${database}`));
  await connected(TEST_CONNECTION_STRING, (client) => client.query(PLAY_WRITES));
});
afterAll(() =>
  connected('postgres:///postgres', (client) =>
    client.query(`DROP DATABASE ${database} WITH (FORCE)`),
  ),
);

export async function withPgPool(use) {
  const pool = new pg.Pool({ connectionString: TEST_CONNECTION_STRING });
  for (const event of ['error', 'connect']) pool.on(event, () => {});
  try {
    return await use(pool);
  } finally {
    await pool.end();
  }
}

export const withPgClient = (use) =>
  withPgPool(async (pool) => {
    const client = await pool.connect();
    try {
      return await use(client, { TEST_CONNECTION_STRING });
    } finally {
      client.release();
    }
  });

export async function reset(client) {
  await client.query(`
    DELETE FROM pulse.job; DELETE FROM pulse.finished_job; DELETE FROM pulse.claim_batch;
    DELETE FROM pulse.heartbeat; DELETE FROM pulse.worker`);
}

// Only the date is a fake, so that the network goes on.
export function setupFakeTimers() {
  const timers = ['setTimeout', 'setInterval', 'setImmediate'];
  jest.useFakeTimers({
    doNotFake: ['nextTick', 'queueMicrotask', 'hrtime', 'performance', ...timers]
      .concat(timers.map((name) => name.replace('set', 'clear'))),
  });
  return { setTime: async (milliseconds) => jest.setSystemTime(milliseconds) };
}

export async function sleepUntil(condition) {
  for (let left = 5000; !condition() && left > 0; left--) {
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  if (!condition()) throw new Error('it does not become so');
}

export async function getJobs(client, { where = 'true', values } = {}) {
  const { rows } = await client.query(
    `SELECT jobs.*, t.identifier AS task_identifier, q.queue_name
       FROM graphile_worker._private_jobs AS jobs
       LEFT JOIN graphile_worker._private_tasks AS t ON t.id = jobs.task_id
       LEFT JOIN graphile_worker._private_job_queues AS q ON q.id = jobs.job_queue_id
      WHERE ${where} ORDER BY jobs.id`,
    values,
  );
  return rows;
}

export const jobCount = async (client) => (await getJobs(client)).length;

export async function getJobQueues(client) {
  const { rows } = await client.query(
    `SELECT q.*, (SELECT count(*)::int FROM graphile_worker._private_jobs AS j
                   WHERE j.job_queue_id = q.id) AS job_count
       FROM graphile_worker._private_job_queues AS q ORDER BY q.queue_name`,
  );
  return rows;
}

// Jobs of tomorrow: one that has failed for good, one that runs, and three that wait.
export async function makeSelectionOfJobs(utils, client) {
  const runAt = new Date(Date.now() + 24 * 60 * 60 * 1000);
  const jobs = {};
  for (const name of ['failedJob', 'regularJob1', 'lockedJob', 'regularJob2', 'untouchedJob']) {
    jobs[name] = await utils.addJob('job3', { name }, { runAt });
  }
  const change = async (job, changes) => {
    const { rows } = await client.query(
      `UPDATE graphile_worker._private_jobs SET ${changes} WHERE id = $1 RETURNING *`,
      [job.id],
    );
    Object.assign(job, rows[0]);
  };
  await change(jobs.failedJob, "attempts = max_attempts, last_error = 'Failed forever'");
  await change(jobs.lockedJob, "locked_by = 'test', locked_at = now()");
  return jobs;
}
