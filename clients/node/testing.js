'use strict'
// Tests with the real handlers: a transaction in which jobs are added and run, and that is rolled
// back. The extension pg_pulse_tap claims the jobs and moves time.
const { query } = require('./lib/calls')
const { route } = require('./lib/console')
const { errors: { PulseError } } = require('./lib/errors')
const { claimed } = require('./lib/job')
const { encode } = require('./lib/json')
const { attempt } = require('./lib/outcome')
const { arrayLiteral, checkList } = require('./lib/parameters')

const MAX_JOBS = 1000

// What a job says while it runs.
class Record {
  logs = []
  reports = []

  tell(job, { log, level, ...report }) {
    if (log === undefined) this.reports.push(report)
    else this.logs.push({ level, text: log })
  }
}

// What is no statement: comments, and texts, which may hold anything.
const QUOTED = /\$(\w*)\$.*?\$\1\$|'(?:[^']|'')*'|"[^"]*"|--[^\n]*|\/\*.*?\*\//gs
const controls = {
  begin: /^\s*(?:begin\b(?!\s+atomic\b)|start\s+transaction\b)/i,
  commit: /^\s*(?:commit|end)\b/i,
  rollback: /^\s*(?:rollback|abort)\b(?!\s+to\b)/i,
}

/** The member of `controls` that a query is; undefined for all other queries. */
function controlOf(query) {
  const text = String(query?.text ?? query).replace(QUOTED, "''")
  const statements = text.split(';').filter((each) => each.trim())
  const found = statements.map((each) => Object.keys(controls).find((name) =>
    controls[name].test(each)))
  if (statements.length < 2 || /\bbegin\s+atomic\b/i.test(text) || !found.some(Boolean)) {
    return found[0]
  }
  throw new Error('the transactions of a test are savepoints: give BEGIN, COMMIT and ROLLBACK ' +
    'each a query of its own')
}

const LEVELS = Symbol('levels')

/** A client, and a pool, whose transactions are savepoints of the test's transaction. */
function nested(client) {
  let depth = 0
  const levels = {
    /** Returns the level of the transaction that begins. */
    async begin() {
      await client.query(`SAVEPOINT pulse_test_${depth + 1}`)
      return ++depth
    },
    /** Keeps what the transaction has done; one that was left open inside has done nothing. */
    async commit(level = depth) {
      if (level < depth) await levels.rollback(level + 1)
      await client.query('SELECT pulse_tap.check_constraints()')
      const released = await client.query(`RELEASE SAVEPOINT pulse_test_${level}`)
      depth = level - 1
      return released
    },
    async rollback(level = depth) {
      await client.query(`ROLLBACK TO SAVEPOINT pulse_test_${level}`)
      depth = level - 1
      return client.query(`RELEASE SAVEPOINT pulse_test_${level}`)
    },
  }
  // Asynchronous, so that a text that is refused rejects.
  const control = async (query) => {
    const name = controlOf(query)
    return name && (name === 'begin' || depth > 0) ? levels[name] : undefined
  }
  const db = {
    [LEVELS]: levels,
    connect: async (callback) => (callback ? callback(null, db, db.release) : db),
    release() {},
    async end() {},
    query(...given) {
      const callback = typeof given.at(-1) === 'function' ? given.pop() : undefined
      const answer = control(given[0]).then((run) => (run ? run() : client.query(...given)))
      if (!callback) return answer
      answer.then((result) => callback(null, result), callback)
    },
  }
  return db
}

async function claim(db, identifiers, record) {
  const [row] = await query(db, `SELECT c.id::text, c.token::text, row_to_json(c)::text AS text
    FROM pulse_tap.claim_next($1::text::text[]) AS c WHERE c.id IS NOT NULL`,
  [arrayLiteral(identifiers)])
  return row && claimed(record, row)
}

/** Runs the handler; its rows are gone where it throws, as those of a transaction of its own. */
async function endOf(db, task, job) {
  const { begin, commit, rollback } = db[LEVELS]
  const level = await begin()
  const end = await attempt(task, job)
  if (end.error !== undefined) return rollback(level).then(() => end)
  try {
    await commit(level)
  } catch (error) {
    await rollback(level)
    return attempt({ handler() { throw error } }, job)
  }
  return end.done && await isHeld(db, job) ? { error: 'its transaction did not commit' } : end
}

/** Whether the claim goes on of a job whose handler says that its transaction has ended the job. */
async function isHeld(db, job) {
  const { begin, rollback } = db[LEVELS]
  const level = await begin()
  try {
    await query(db, 'SELECT FROM pulse.held_job($1::text::bigint, $2::text::bigint)',
      [job.id, job.token])
    return true
  } catch (error) {
    if (error.code === 'PU001') return false
    throw error
  } finally {
    await rollback(level)
  }
}

const text = (document) => (document === undefined ? null : encode(document))

async function report(db, job, record) {
  for (const { progress, message, stage, checkpoint } of record.reports) {
    await query(db, `SELECT FROM pulse.progress($1::text::bigint, $2::text::bigint,
      fraction => $3::float8, message => $4::text, stage => $5::text,
      checkpoint => $6::text::json)`,
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
    await ask('snooze', ", $3::float8 * interval '1 s', $4::text::json", [snooze, text(checkpoint)])
    return 'snoozed'
  }
  if (error === undefined) {
    await ask('complete', ', $3::text::json', [text(result) === 'null' ? null : text(result)])
    return 'completed'
  }
  const [{ state }] = await ask('fail',
    ", $3::text, $4::bool, $5::float8 * interval '1 s', $6::text::json",
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
async function runJobs(client, tasks, { max = MAX_JOBS } = {}) {
  const db = client[LEVELS] ? client : nested(client)
  checkList(tasks, 'tasks')
  route(console)
  const byName = new Map(Array.from(tasks, (task) => [task.identifier, task]))
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
