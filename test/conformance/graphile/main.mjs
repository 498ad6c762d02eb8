// runTaskListOnce of Graphile Worker as a worker of pg_pulse: runs what is ready, one job after the
// other, and ends when nothing is left.

// A claim opens as many queues as it asks for jobs, so one may come back without.
const MAX_EMPTY_CLAIMS = 3;

let started = 0;

export function runTaskListOnce({ forbiddenFlags }, tasks, client) {
  const pool = `pool-${process.pid}-${++started}`;
  const run = runAll(pool, forbiddenFlags, tasks, client);
  run.worker = { workerPool: { id: pool } };
  return run;
}

async function runAll(pool, forbiddenFlags, tasks, client) {
  const names = Object.keys(tasks);
  const worker = await value(client, 'SELECT id FROM pulse.register_worker($1)', [pool]);
  for (let empty = 0; empty < MAX_EMPTY_CLAIMS; ) {
    const flags = typeof forbiddenFlags === 'function' ? await forbiddenFlags() : forbiddenFlags;
    const { rows } = await client.query('SELECT * FROM pulse.claim($1, 1, $2, $3)', [
      worker,
      names,
      flags ?? null,
    ]);
    empty = rows.length ? 0 : empty + 1;
    for (const job of rows) await runJob(client, tasks[job.identifier], job);
  }
  await client.query('SELECT pulse.deregister_worker($1)', [worker]);
}

async function value(client, query, values) {
  const { rows } = await client.query({ text: query, values, rowMode: 'array' });
  return rows[0][0];
}

// What a task makes of a list is a list of outcomes: the elements that failed are tried again.
async function runJob(client, task, job) {
  try {
    const flags = job.flags && Object.fromEntries(job.flags.map((flag) => [flag, true]));
    const result = await task(job.payload, { job: { ...job, key: job.job_key, flags } });
    if (!Array.isArray(result) || !Array.isArray(job.payload)) {
      return await complete(client, job);
    }
    const outcomes = await Promise.allSettled(result);
    const failed = job.payload.filter((_, i) => outcomes[i].status === 'rejected');
    if (!failed.length) return await complete(client, job);
    await fail(client, job, `${failed.length} elements failed`, JSON.stringify(failed));
  } catch (error) {
    await fail(client, job, error.message, null);
  }
}

const complete = (client, { id, token }) =>
  client.query('SELECT pulse.complete($1, $2)', [id, token]);

const fail = (client, { id, token }, error, payload) =>
  client.query('SELECT pulse.fail($1, $2, $3, payload => $4)', [id, token, error, payload]);
