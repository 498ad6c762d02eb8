'use strict'
// Tests with the real handlers, in a transaction that is rolled back.
const assert = require('node:assert')
const test = require('node:test')
const pg = require('pg')
const { addJob, Failure, json, task } = require('..')
const { rolledBack } = require('../testing')
const { inferring } = require('./inferring')

const pool = new pg.Pool({ max: 2 })
test.before(() => pool.query('CREATE TABLE mail (purchase int PRIMARY KEY)'))
test.after(async () => {
  const {
    rows: [{ mails, jobs }],
  } = await pool.query(`SELECT
    (SELECT count(*) FROM mail)::int AS mails, (SELECT count(*) FROM pulse.job)::int AS jobs`)
  await pool.end()
  assert.deepStrictEqual({ mails, jobs }, { mails: 0, jobs: 0 }, 'nothing is left')
})

const shop = (db) => [
  task('receipt', async ({ purchase }, job) => {
    console.log('to %s', purchase)
    job.progress(0.5, { message: 'half' })
    await db.query('INSERT INTO mail VALUES ($1)', [purchase])
    await addJob(db, 'thanks', { purchase })
    return { sent: purchase }
  }),
  task('thanks', async () => json('{"exact": 1.10}')),
]

test(
  'jobs run with their handlers, and their jobs run too',
  rolledBack(pool, async ({ db, runJobs }) => {
    await addJob(db, 'receipt', { purchase: 1 })
    await addJob(db, 'other')
    const [receipt, thanks, ...more] = await runJobs(shop(db))
    assert.deepStrictEqual(receipt, {
      id: receipt.id,
      task: 'receipt',
      attempt: 1,
      payload: { purchase: 1 },
      state: 'completed',
      result: { sent: 1 },
      error: undefined,
      logs: [{ level: 'info', text: 'to 1' }],
    })
    assert.deepStrictEqual([thanks.state, thanks.result, more], ['completed', { exact: 1.1 }, []])
    assert.strictEqual((await db.query('SELECT * FROM mail')).rows.length, 1)
  }),
)

test(
  'a failed attempt leaves no rows, and time travels to the next',
  rolledBack(pool, async ({ db, runJobs, travel }) => {
    await addJob(db, 'receipt', { purchase: 1 })
    await addJob(db, 'receipt', { purchase: 1 }, { maxAttempts: 2 })
    const [, , failed] = await runJobs(shop(db)).then((all) => [
      0,
      0,
      all.find((each) => each.error),
    ])
    assert.deepStrictEqual([failed.state, failed.attempt], ['ready', 1])
    assert.match(failed.error, /duplicate key/)
    assert.deepStrictEqual(await runJobs(shop(db)), [])
    await travel('1 hour')
    const [again] = await runJobs(shop(db))
    assert.deepStrictEqual([again.state, again.attempt], ['failed', 2])
  }),
)

test(
  'transactions of handlers are savepoints, and end the job exactly once',
  rolledBack(pool, async ({ db, runJobs }) => {
    const pay = task('pay', async (payload, job) => {
      const client = await db.connect()
      await client.query('BEGIN')
      await client.query('INSERT INTO mail VALUES (2)')
      await job.fence(client)
      await job.complete(client, 'paid')
      await client.query('COMMIT')
      client.release()
    })
    const undo = task('undo', async () => {
      await db.query('BEGIN')
      await db.query('INSERT INTO mail VALUES (3)')
      await db.query('ROLLBACK')
    })
    await addJob(db, 'pay')
    await addJob(db, 'undo')
    assert.deepStrictEqual(
      (await runJobs([pay, undo])).map((each) => each.state),
      ['completed', 'completed'],
    )
    assert.deepStrictEqual((await db.query('SELECT purchase FROM mail')).rows, [{ purchase: 2 }])
  }),
)

test(
  'ends by the words of the library, and checkpoints',
  rolledBack(pool, async ({ db, runJobs, travel }) => {
    const steps = task('steps', async (payload, job) => {
      if (job.attempt > 1) throw new Failure('no more', { retry: false })
      if (!job.lastCheckpoint) {
        job.checkpoint(json('{"n": 1.10}'))
        return job.snooze(60)
      }
      assert.strictEqual(job.lastCheckpointText, '{"n": 1.10}')
      throw new Failure('the rest', { payload: ['rest'], retryIn: 60 })
    })
    await addJob(db, 'steps', ['all'])
    const seen = []
    for (let i = 0; i < 3; i++) {
      seen.push(...(await runJobs([steps])))
      await travel('61 s')
    }
    assert.deepStrictEqual(
      seen.map((each) => [each.state, each.attempt, each.payload]),
      [
        ['snoozed', 1, ['all']],
        ['ready', 1, ['all']],
        ['failed', 2, ['rest']],
      ],
    )
  }),
)

test(
  'an attempt ends as in production',
  rolledBack(pool, async ({ db, runJobs }) => {
    const ends = {
      undone: async (_, job) => {
        await db.query('BEGIN')
        await job.complete(db)
        await db.query('ROLLBACK')
      },
      open: async (_, job) => {
        await db.query('BEGIN')
        await job.complete(db)
      },
      nul: async () => { throw 'a\0b' },
      large: async () => 'x'.repeat(1 << 20),
    }
    const states = {}
    for (const [name, handler] of Object.entries(ends)) {
      await addJob(db, name, {}, { maxAttempts: 1 })
      const [{ state, error }] = await runJobs([task(name, handler)])
      states[name] = `${state}: ${error.replace(/ has \d+.*| at .*/s, '')}`
    }
    assert.deepStrictEqual(states, {
      undone: 'failed: its transaction did not commit',
      open: 'failed: its transaction did not commit',
      nul: 'failed: a\uFFFDb',
      large: 'failed: NotJson: the answer of large',
    })
  }),
)

test(
  'the rows of a handler that throws are gone, also those before a transaction of its own',
  rolledBack(pool, async ({ db, runJobs }) => {
    const twice = task('twice', async () => {
      await db.query('INSERT INTO mail VALUES (1)')
      await db.query('BEGIN')
      await db.query('INSERT INTO mail VALUES (2)')
      throw new Error('between')
    })
    await addJob(db, 'twice')
    assert.strictEqual((await runJobs([twice]))[0].state, 'ready')
    assert.deepStrictEqual((await db.query('SELECT * FROM mail')).rows, [])
  }),
)

test(
  'queries of a test, in each of their shapes',
  rolledBack(pool, async ({ db }) => {
    for (const text of [
      'BEGIN; INSERT INTO mail VALUES (1); COMMIT',
      'INSERT INTO mail VALUES (1); COMMIT',
    ]) {
      await assert.rejects(db.query(text), /each a query of its own/)
    }
    await db.query({ text: '/* one; */ BEGIN -- two' })
    await db.query("DO $$ BEGIN INSERT INTO mail VALUES (1); END $$; SELECT '; COMMIT'")
    await db.query({ text: 'ROLLBACK' })
    const asked = (...query) =>
      new Promise((resolve) => db.query(...query, (...answer) => resolve(answer)))
    const [none, { rows }] = await asked('SELECT $1::int AS n', [7])
    assert.deepStrictEqual([none, rows], [null, [{ n: 7 }]])
    assert.deepStrictEqual((await asked('SELECT * FROM mail'))[1].rows, [])
    assert.match((await asked('BEGIN; COMMIT'))[0].message, /each a query of its own/)
    assert.strictEqual(await new Promise((resolve) => db.connect((_, it) => resolve(it))), db)
  }),
)

test('a database without pg_pulse_tap is told what to install', async () => {
  await pool.query('CREATE DATABASE untested')
  const bare = new pg.Pool({ database: 'untested' })
  try {
    await assert.rejects(
      rolledBack(bare, async () => {})(),
      /no extension pg_pulse_tap\nHINT: CREATE EXTENSION pg_pulse_tap/,
    )
  } finally {
    await bare.end()
  }
})

test(
  'a driver that infers types stores results, checkpoints and payloads as they are',
  rolledBack({ connect: async () => inferring(await pool.connect()) },
    async ({ db, runJobs, travel }) => {
      const ends = {
        returns: () => ({ n: 1 }),
        completes: (_, job) => job.complete(db, { n: 2 }),
        snoozes: (_, job) => job.lastCheckpoint ?? job.snooze(1, { checkpoint: { n: 3 } }),
        reports: (_, job) => {
          job.checkpoint({ n: 4 })
          if (!job.lastCheckpoint) throw new Error('again')
          return job.lastCheckpoint
        },
        splits: (payload) => {
          if (!payload.n) throw new Failure('the rest', { payload: { n: 5 } })
          return payload
        },
      }
      const names = Object.keys(ends)
      const tasks = names.map((name) => task(name, ends[name]))
      for (const name of names) {
        await db.query(`SELECT FROM pulse.set_task('${name}', keep_completed => '1 day')`)
        await addJob(db, name)
      }
      await runJobs(tasks)
      await travel('1 hour')
      await runJobs(tasks)
      const { rows } = await db.query(
        'SELECT identifier, result::text FROM pulse.finished_job ORDER BY result::text')
      assert.deepStrictEqual(rows, names.map((identifier, i) =>
        ({ identifier, result: `{"n":${i + 1}}` })))
    }),
)
