'use strict'
// Calls on a server: in transactions that are well and that are not, over a pool and a pooler, on
// databases of other versions. PGHOST and so on name the server; the role is a superuser.
const assert = require('node:assert')
const fs = require('node:fs')
const test = require('node:test')
const pg = require('pg')
const pulse = require('..')
const functions = require('../lib/generated/functions')
const { Session } = require('../lib/session')
const { addJob, checkVersion } = pulse

const pool = new pg.Pool({ max: 3 })
test.after(() => pool.end())

async function withClient(use, database) {
  const client = new pg.Client({ database })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

async function inTransaction(use, begin = 'BEGIN') {
  return withClient(async (client) => {
    await client.query(begin)
    const result = await use(client)
    await client.query('COMMIT')
    return result
  })
}

const jobsOf = async (identifier) => (await pool.query(
  'SELECT id::text, payload, queue_name, state FROM pulse.job WHERE identifier = $1 ORDER BY 1',
  [identifier])).rows

test('a job and a row of the caller are one transaction', async () => {
  await pool.query('CREATE TABLE purchase (id int)')
  const buy = (id) =>
    inTransaction(async (client) => {
      await client.query('INSERT INTO purchase VALUES ($1)', [id])
      const job = await addJob(
        client,
        'receipt',
        { purchase: id },
        { queueName: 'mail', priority: 3 },
      )
      assert.strictEqual(typeof job.id, 'string')
      if (id === 2) throw new Error('declined')
      return job
    })
  const job = await buy(1)
  await assert.rejects(buy(2), /declined/)
  assert.deepStrictEqual(await jobsOf('receipt'), [
    { id: job.id, payload: { purchase: 1 }, queue_name: 'mail', state: 'parked' },
  ])
  assert.strictEqual(job.priority, 3)
})

test('a pool adds a job by itself, and a payload may be anything of JSON', async () => {
  for (const payload of [
    [1, [2]],
    'text',
    7,
    false,
    null,
    { a: { b: 'ü\u2028"' } },
    pulse.json('{"n": 1.10}'),
  ]) {
    await addJob(pool, 'any', payload)
  }
  await addJob(pool, 'any')
  const { rows } = await pool.query(
    "SELECT payload::text FROM pulse.job WHERE identifier = 'any' ORDER BY id",
  )
  assert.deepStrictEqual(
    rows.map((row) => row.payload),
    ['[1,[2]]', '"text"', '7', 'false', 'null', '{"a":{"b":"ü\u2028\\""}}', '{"n": 1.10}', '{}'],
  )
})

test('a payload that is no JSON adds nothing', async () => {
  const circle = {}
  circle.self = circle
  for (const payload of [circle, 1n, { n: 1n }, () => {}, Symbol('s')]) {
    await assert.rejects(addJob(pool, 'refused', payload), /the payload is no JSON/)
  }
  assert.deepStrictEqual(await jobsOf('refused'), [])
})

test('a transaction that has failed, is read-only or over adds nothing, and says so', async () => {
  await withClient(async (client) => {
    await client.query('BEGIN')
    await client.query('SELECT 1/0').catch(() => {})
    await assert.rejects(
      addJob(client, 'none'),
      (error) => error instanceof pulse.Aborted && /ROLLBACK, and repeat/.test(error.hint),
    )
    await client.query('ROLLBACK')
    await client.query('BEGIN READ ONLY')
    await assert.rejects(
      addJob(client, 'none'),
      (error) => error instanceof pulse.ReadOnly && /primary/.test(error.hint),
    )
    await client.query('ROLLBACK')
  })
  const client = new pg.Client()
  await client.connect()
  await client.end()
  await assert.rejects(addJob(client, 'none'), /closed|not queryable/)
  assert.deepStrictEqual(await jobsOf('none'), [])
})

test('what is no client is refused, with what to give', async () => {
  await assert.rejects(addJob('receipt', {}), /give a client or pool of node-postgres/)
  await assert.rejects(
    addJob(pool, 'mail', {}, { queue_name: 'q' }),
    /addJob has no option queue_name: it has queueName/,
  )
})

test('a role without the right is told which one', async () => {
  await pool.query('CREATE ROLE stranger LOGIN')
  await withClient(async (client) => {
    await client.query('SET ROLE stranger')
    await assert.rejects(
      addJob(client, 'none'),
      (error) => error instanceof pulse.NotGranted && /grant_producer/.test(error.hint),
    )
  })
})

test('the errors of the server have a class, a code and a hint', async () => {
  await assert.rejects(
    addJob(pool, '..'),
    (error) => error instanceof pulse.OutOfRange && error.code === 'PU004',
  )
  await assert.rejects(pulse.cancelJob(pool, 10n ** 11n), pulse.NotFound)
  await inTransaction((client) =>
    assert.rejects(pulse.waitForEnd(client, []), pulse.InTransaction),
  )
})

test('an id beyond 2^53 reaches the server digit for digit', async () => {
  const said = []
  const spy = {
    query: async (text, values) => {
      said.push(values)
      return pool.query(text, values)
    },
  }
  for (const id of ['9007199254740993', 9007199254740993n]) {
    await pulse.ended(spy, [id]).catch(() => {})
    await pulse.cancelJob(spy, id).catch(() => {})
  }
  assert.deepStrictEqual(
    said,
    Array(2)
      .fill([['{"9007199254740993"}'], ['9007199254740993']])
      .flat(),
  )
})

test('many jobs, jobs after jobs, and how they ended', async () => {
  const added = await pulse.addJobs(pool, [
    {
      identifier: 'many',
      payload: [1],
      queueName: 'q',
      runAt: new Date('2100-01-01'),
      flags: ['a', 'b'],
    },
    { identifier: 'many', jobKey: 'key' },
  ])
  assert.deepStrictEqual(
    added.map((job) => [
      job.queueName,
      job.runAt.getUTCFullYear() === 2100,
      job.flags,
      job.jobKey,
    ]),
    [
      ['q', true, ['a', 'b'], null],
      [null, false, null, 'key'],
    ],
  )
  const after = await pulse.addJobAfter(
    pool,
    added.map((job) => job.id),
    'after',
    { n: 1 },
    { startsWhen: 'ended' },
  )
  assert.strictEqual(after.startsWhen, 'ended')
  const flow = await pulse.addFlow(
    pool,
    [
      { identifier: 'join', after: ['a', 'b', after.id] },
      { key: 'a', identifier: 'part', payload: { n: 1 } },
      { key: 'b', identifier: 'part', queueName: 'q' },
    ],
    { flowName: 'flow' },
  )
  assert.deepStrictEqual(
    flow.map((row) => row.key),
    [null, 'a', 'b'],
  )
  assert.strictEqual(await pulse.cancelJob(pool, added[0].id, { reason: 'no need' }), 'cancelled')
  assert.strictEqual(await pulse.cancelFlow(pool, flow[0].flowId), 3)
  assert.deepStrictEqual(
    (await pulse.ended(pool, [added[0].id])).map((row) => [row.id, row.state]),
    [[added[0].id, 'cancelled']],
  )
  assert.strictEqual(await pulse.waitForEnd(pool, [added[0].id], { maxWait: 5 }), 1)
  assert.strictEqual((await pulse.removeJob(pool, 'key')).jobKey, 'key')
  assert.strictEqual(await pulse.removeJob(pool, 'key'), null)
})

test('once in a period, by members in any order', async () => {
  const unique = { for: '1 hour', by: ['to', 'kind'] }
  const first = await addJob(pool, 'digest', { to: 'ada', kind: 'day', n: 1 }, { unique })
  const second = await addJob(
    pool,
    'digest',
    { n: 2, kind: 'day', to: 'ada' },
    { unique: { ...unique, by: ['kind', 'to'] } },
  )
  assert.deepStrictEqual([first.isNew, second.isNew, second.id], [true, false, first.id])
  const digest = pulse.task('digest', () => {}, { unique: { for: 3600 } })
  assert.strictEqual((await digest.add(pool, { to: 'bob' })).isNew, true)
  assert.strictEqual((await digest.add(pool, { to: 'bob' })).isNew, false)
  assert.strictEqual(await pulse.forgetOnce(pool, 'digest', pulse.uniqueKey({ to: 'bob' })), true)
})

test('schedules and settings', async () => {
  const stored = await pulse.schedule(pool, 'nightly', 'report', {
    cron: '0 3 * * *',
    timeZone: 'Europe/Berlin',
    payload: { n: 1 },
  })
  assert.deepStrictEqual([stored.name, stored.payload], ['nightly', { n: 1 }])
  const [first, second] = await pulse.nextRuns(pool, 'nightly', { maxRuns: 2 })
  assert.ok(first instanceof Date && second > first)
  assert.strictEqual(await pulse.unschedule(pool, 'nightly'), true)
  assert.strictEqual(
    (await pulse.setTask(pool, 'report', { timeout: 90, keepCompleted: '1 day' })).timeout,
    '00:01:30',
  )
  assert.strictEqual((await pulse.setQueue(pool, 'mail', { concurrency: 3 })).concurrency, 3)
})

test('a task checks a payload before it adds a job', async () => {
  const schema = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value) =>
        value?.to ? { value } : { issues: [{ message: 'Required', path: ['to'] }] },
    },
  }
  const mail = pulse.task('checked', () => {}, { schema })
  await assert.rejects(
    mail.add(pool, { too: 'ada' }),
    (error) =>
      error instanceof pulse.PayloadRefused &&
      error.message === 'the payload of checked is refused: to: Required',
  )
  await mail.add(pool, { to: 'ada' })
  assert.strictEqual((await jobsOf('checked')).length, 1)
})

test('a payload that is null is null, however the job is added', async () => {
  await addJob(pool, 'null', null)
  await pulse.addJobs(pool, [{ identifier: 'null', payload: null }, { identifier: 'null' }])
  assert.deepStrictEqual((await jobsOf('null')).map((job) => job.payload), [null, null, {}])
})

test('each call is a statement that the server understands', async () => {
  await withClient(async (client) => {
    for (const [name, { takes }] of Object.entries(functions)) {
      const prepare = {
        query: (text) =>
          client.query(text.startsWith('CALL') ? 'SELECT 1' : `PREPARE ${name} AS ${text}`),
      }
      const options = Object.fromEntries(Object.keys(takes).map((argument) => [argument, []]))
      const given = functions[name].given.map(() => [])
      for (const argument of functions[name].given) delete options[argument]
      await pulse[name](prepare, ...given, options)
    }
    const {
      rows: [{ count }],
    } = await client.query('SELECT count(*)::int FROM pg_prepared_statements')
    assert.ok(count > 40, `${count} statements`)
  })
})

test('a database without the extension, or with another version', async () => {
  await pool.query('CREATE DATABASE bare')
  await withClient(async (client) => {
    const isMissing = (error) =>
      error instanceof pulse.NoExtension && /CREATE EXTENSION pg_pulse/.test(error.message)
    await assert.rejects(addJob(client, 'none'), isMissing)
    await assert.rejects(checkVersion(client), isMissing)
    await client.query("CREATE EXTENSION pg_pulse VERSION '0.1.0'")
    const isOld = (error) =>
      error instanceof pulse.OtherVersion && /ALTER EXTENSION pg_pulse UPDATE/.test(error.message)
    await assert.rejects(checkVersion(client), isOld)
    await assert.rejects(addJob(client, 'none'), isOld)
    await assert.rejects(addJob(client, 'none', {}, { unique: { for: '1 day' } }), isOld)
    await client.query('DROP EXTENSION pg_pulse')
    await client.query('CREATE EXTENSION pg_pulse')
    assert.match(await checkVersion(client), /^0\.2/)
    await client.query("UPDATE pg_extension SET extversion = '0.9.0' WHERE extname = 'pg_pulse'")
    await assert.rejects(
      checkVersion(client),
      /for pg_pulse 0\.2\.\d+, and the database has 0\.9\.0/,
    )
  }, 'bare')
})

test('a session of a folder of tasks that ends, or is left in a transaction', async () => {
  const folder = fs.mkdtempSync(`${require('node:os').tmpdir()}/pg-pulse-`)
  fs.writeFileSync(`${folder}/cut.js`, `
    module.exports = (_, { withPgClient }) => withPgClient(async (client) => {
      const ended = new Promise((resolve) => client.on('end', resolve))
      await client.query('SELECT pg_terminate_backend(pg_backend_pid())').catch(() => {})
      await ended
      return 'goes on'
    })`)
  fs.writeFileSync(`${folder}/leave.js`, `
    const pid = async (client) =>
      (await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid
    module.exports = async ({ pids }, { withPgClient }) => {
      await withPgClient(async (client) => {
        pids.push(await pid(client))
        await client.query('BEGIN')
        throw new Error('it broke')
      }).catch(() => {})
      pids.push(await withPgClient(pid))
    }`)
  const { tasks, end } = await pulse.readTasks(folder)
  try {
    const { signal } = new AbortController()
    const [cut, leave] = tasks
    await cut.handler({}, { signal })
    const pids = []
    await leave.handler({ pids }, { signal })
    assert.notStrictEqual(pids[0], pids[1], 'no other job gets the transaction')
  } finally {
    await end()
    fs.rmSync(folder, { recursive: true })
  }
})

test('a session of the direct mode ends once, also where the server has ended it', async () => {
  const started = () => {
    const connect = () => new pg.Client({ application_name: 'ends' })
    return new Session(connect, { notice() {} })
  }
  const others = async () => (await pool.query(
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'ends'")).rowCount
  const session = started()
  await session.query('SELECT 1')
  await session.end()
  await session.end()
  await assert.rejects(session.query('SELECT 1'), /the session is over/)
  const cut = started()
  await cut.query('SELECT 1')
  await pool.query('SELECT pg_terminate_backend($1)', [cut.pid])
  while (await others() > 0);
  await cut.end()
  const waits = started()
  await waits.query('SELECT 1')
  const wait = assert.rejects(waits.ask('SELECT pg_sleep(1000)', []))
  await waits.end()
  await wait
})

test(
  'through a transaction pooler',
  { skip: !process.env.POOLER_HOST && 'no pgbouncer' },
  async () => {
    const pooled = new pg.Pool({
      host: process.env.POOLER_HOST,
      port: process.env.POOLER_PORT,
      max: 4,
    })
    try {
      await Promise.all(
        Array.from({ length: 20 }, (_, n) => addJob(pooled, 'pooled', { n }, { jobKey: `p${n}` })),
      )
      assert.strictEqual((await jobsOf('pooled')).length, 20)
    } finally {
      await pooled.end()
    }
  },
)
