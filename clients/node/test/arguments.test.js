'use strict'
// What the arguments of calls are on a server: payloads, times, and what is refused. PGHOST and so
// on name the server; the role is a superuser.
const assert = require('node:assert')
const test = require('node:test')
const pg = require('pg')
const pulse = require('..')
const { inferring } = require('./inferring')
const { addJob, addJobs, addFlow } = pulse

const pool = new pg.Pool({ max: 3 })
test.after(() => pool.end())

const payloadsOf = async (ids) => (await pool.query(
  `SELECT payload::text FROM pulse.job WHERE id = ANY ($1::text::bigint[])
    ORDER BY array_position($1::text::bigint[], id)`, [`{${ids}}`])).rows.map((row) => row.payload)

test('a driver that infers types stores the document, and no text of it', async () => {
  const client = await pool.connect()
  try {
    const db = inferring(client)
    const jobs = [await addJob(db, 'inferred', { n: 1 }),
      ...await addJobs(db, [{ identifier: 'inferred', payload: { n: 2 }, flags: ['a'] }]),
      ...await addFlow(db, [{ identifier: 'inferred', payload: { n: 3 } }])]
    assert.deepStrictEqual(await payloadsOf(jobs.map(({ id }) => id)),
      ['{"n":1}', '{"n":2}', '{"n":3}'])
    const payload = { n: 4 }
    const nightly = await pulse.schedule(db, 'inferred', 'x', { every: 3600, payload })
    assert.deepStrictEqual(nightly.payload, payload)
  } finally {
    client.release()
  }
})

test('addJobs takes the payloads that addJob takes', async () => {
  const payloads = ['\u0000', { '\u0000': 1 }, '\ud83d', pulse.json('{"n": 1.10}'), [1, [2]], null,
    undefined, 'null', { a: 'ü"\\' }]
  const single = []
  for (const payload of payloads) single.push((await addJob(pool, 'payload', payload)).id)
  const many = await addJobs(pool, payloads.map((payload) => ({ identifier: 'payload', payload })))
  const stored = await payloadsOf(single)
  assert.deepStrictEqual(stored, ['"\\u0000"', '{"\\u0000":1}', '"\\ud83d"', '{"n": 1.10}',
    '[1,[2]]', 'null', '{}', '"null"', '{"a":"ü\\"\\\\"}'])
  assert.deepStrictEqual(await payloadsOf(many.map(({ id }) => id)), stored)
  assert.deepStrictEqual(await addJobs(pool, []), [])
})

test('thousands of jobs in a call keep their order', async () => {
  const specs = Array.from({ length: 10_000 }, (_, n) => (
    { identifier: 'thousands', payload: { n }, priority: n % 7, flags: ['"\\', `f${n}`] }))
  const added = await addJobs(pool, specs)
  assert.deepStrictEqual(added.map(({ payload, priority, flags }) => [payload.n, priority, flags]),
    specs.map(({ payload, priority, flags }) => [payload.n, priority, flags]))
})

test('a number that is none is refused, and not left out', async () => {
  const values = { maxAttempts: [NaN, Infinity], priority: [NaN, -Infinity], runAt: [NaN] }
  for (const [member, wrong] of Object.entries(values)) {
    for (const value of wrong) {
      const job = { identifier: 'refused', [member]: value }
      await assert.rejects(addJob(pool, 'refused', {}, { [member]: value }), /invalid input syntax/)
      await assert.rejects(addJobs(pool, [job]), /invalid input syntax/)
      await assert.rejects(addFlow(pool, [job]), /invalid input syntax/)
    }
  }
})

test('a time is that time in any year', async () => {
  for (const [year, month] of [[10_000, 0], [275_000, 11], [9999, 11], [50, 1], [0, 2], [-43, 2]]) {
    const runAt = new Date(0)
    runAt.setUTCFullYear(year, month, 15)
    const jobs = [await addJob(pool, 'year', {}, { runAt }),
      ...await addJobs(pool, [{ identifier: 'year', runAt }])]
    const [{ id }] = await addFlow(pool, [{ identifier: 'year', runAt }])
    const { rows: [row] } = await pool.query('SELECT run_at FROM pulse.job WHERE id = $1', [id])
    const times = [...jobs.map((job) => job.runAt), row.run_at]
    assert.deepStrictEqual(times, [runAt, runAt, runAt], `year ${year}`)
  }
  await assert.rejects(addJob(pool, 'year', {}, { runAt: new Date(-8e15) }), /out of range/)
})

test('in a flow an id is an id, and a text that is a key is a key', async () => {
  const { id } = await addJob(pool, 'parent', {}, { runAt: new Date('2100-01-01') })
  const flow = await addFlow(pool, [{ key: '12', identifier: 'parent' },
    ...['12', id, BigInt(id), Number(id)].map((after) => ({ identifier: 'x', after: [after] }))])
  const { rows } = await pool.query(`SELECT parents::text[] FROM pulse.dependency
    WHERE child_id = ANY ($1::text::bigint[])
    ORDER BY array_position($1::text::bigint[], child_id)`,
  [`{${flow.map((row) => row.id)}}`])
  assert.deepStrictEqual(rows.map(({ parents }) => parents), [[flow[0].id], [id], [id], [id]])
  await assert.rejects(addFlow(pool, [{ identifier: 'x', after: [{ id }] }]), /neither a key/)
})
