'use strict'
// Tests with the real handlers: a transaction in which jobs are added and run, and that is rolled
// back. The extension pg_pulse_tap claims the jobs and moves time.
const { query } = require('./lib/calls')
const { route } = require('./lib/console')
const { errors: { PulseError } } = require('./lib/errors')
const { claimed } = require('./lib/job')
const { encode } = require('./lib/json')
const { attempt } = require('./lib/outcome')

const MAX_JOBS = 1000
let isRouted = false

// What a job says while it runs.
class Record {
  logs = []
  reports = []

  tell(job, { log, level, ...report }) {
    if (log === undefined) this.reports.push(report)
    else this.logs.push({ level, text: log })
  }
}

const BEGIN = /^\s*(?:begin|start\s+transaction)\b/i
const COMMIT = /^\s*(?:commit|end)\b/i
const ROLLBACK = /^\s*(?:rollback|abort)\b(?!\s+to\b)/i

/** A client, and a pool, whose transactions are savepoints of the test's transaction. */
function nested(client) {
  let depth = 0
  const savepoint = () => `pulse_test_${depth}`
  const db = {
    connect: async () => db,
    release() {},
    async end() {},
    async query(text, values) {
      if (BEGIN.test(text)) {
        depth++
        return client.query(`SAVEPOINT ${savepoint()}`)
      }
      if (depth > 0 && COMMIT.test(text)) {
        await client.query('SELECT pulse_tap.check_constraints()')
        return client.query(`RELEASE SAVEPOINT pulse_test_${depth--}`)
      }
      if (depth > 0 && ROLLBACK.test(text)) {
        await client.query(`ROLLBACK TO SAVEPOINT ${savepoint()}`)
        return client.query(`RELEASE SAVEPOINT pulse_test_${depth--}`)
      }
      return client.query(text, values)
    },
  }
  return db
}

async function claim(db, identifiers, record) {
  const [row] = await query(db, `SELECT c.id::text, c.token::text, row_to_json(c)::text AS text
    FROM pulse_tap.claim_next($1::text::text[]) AS c WHERE c.id IS NOT NULL`,
  [`{${identifiers.map((name) => JSON.stringify(name)).join()}}`])
  return row && claimed(record, row)
}

/** Runs the handler; its rows are gone where it throws, as those of a transaction of its own. */
async function endOf(db, task, job) {
  await db.query('BEGIN')
  const end = await attempt(task, job)
  if (end.error !== undefined) return db.query('ROLLBACK').then(() => end)
  try {
    await db.query('COMMIT')
    return end
  } catch (error) {
    await db.query('ROLLBACK')
    return attempt({ handler() { throw error } }, job)
  }
}

const text = (document) => (document === undefined ? null : encode(document))

async function report(db, job, record) {
  for (const { progress, message, stage, checkpoint } of record.reports) {
    await query(db, `SELECT FROM pulse.progress($1::text::bigint, $2::text::bigint,
      fraction => $3::float8, message => $4::text, stage => $5::text, checkpoint => $6::json)`,
    [job.id, job.token, progress ?? null, message ?? null, stage ?? null, text(checkpoint)])
  }
}

/** Reports the end as pulse-worker does; returns the state of the job. */
async function reportEnd(db, job, end) {
  const { result, error, retry, retry_in, payload, snooze, checkpoint, done } = end
  const ask = (name, rest, values) => query(db,
    `SELECT * FROM pulse.${name}($1::text::bigint, $2::text::bigint${rest}) AS state`,
    [job.id, job.token, ...values])
  if (done) return 'completed'
  if (snooze !== undefined) {
    await ask('snooze', ", $3::float8 * interval '1 s', $4::json", [snooze, text(checkpoint)])
    return 'snoozed'
  }
  if (error === undefined) {
    await ask('complete', ', $3::json', [text(result) === 'null' ? null : text(result)])
    return 'completed'
  }
  const [{ state }] = await ask('fail',
    ", $3::text, $4::bool, $5::float8 * interval '1 s', $6::json",
    [error, retry ?? true, retry_in ?? null, text(payload)])
  return state
}

async function runNext(db, tasks) {
  const record = new Record()
  const job = await claim(db, [...tasks.keys()], record)
  if (!job) return undefined
  const end = await endOf(db, tasks.get(job.identifier), job)
  job.isOver = true
  if (!end.done) await report(db, job, record)
  const state = await reportEnd(db, job, end)
  return { id: job.id, task: job.identifier, attempt: job.attempt, payload: job.payload, state,
    result: end.result && JSON.parse(text(end.result)), error: end.error, logs: record.logs }
}

/** Runs the due jobs of these tasks in the caller's transaction, one after the other, until none is
 * due. Returns one object for each attempt. */
async function runJobs(db, tasks, { max = MAX_JOBS } = {}) {
  if (!isRouted) route(console)
  isRouted = true
  const byName = new Map(tasks.map((task) => [task.identifier, task]))
  const attempts = []
  await query(db, 'SELECT FROM pulse_tap.sweep_due()')
  for (let attempt; (attempt = await runNext(db, byName)); ) {
    attempts.push(attempt)
    if (attempts.length > max) {
      throw new Error(`runJobs() has run ${max} jobs: does a job add itself again?`)
    }
  }
  return attempts
}

async function freeze(client) {
  try {
    await query(client, 'SELECT pulse_tap.freeze()')
  } catch (error) {
    if (error.code !== '3F000') throw error
    throw new PulseError('the database of the tests has no extension pg_pulse_tap', {
      code: error.code, hint: 'CREATE EXTENSION pg_pulse_tap CASCADE', cause: error })
  }
}

/** A test of node:test in a transaction that is rolled back. The test gets `db`, in place of the
 * application's pool or client, `runJobs(tasks)` and `travel('1 hour')`. */
function rolledBack(pool, test) {
  return async (t) => {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      await freeze(client)
      const db = nested(client)
      await test({ t, db, runJobs: (tasks, options) => runJobs(db, tasks, options),
        travel: (howFar) => query(db, 'SELECT pulse_tap.travel($1::text::interval)', [howFar]) })
    } finally {
      await client.query('ROLLBACK').catch(() => {})
      client.release()
    }
  }
}

module.exports = { rolledBack, runJobs }
