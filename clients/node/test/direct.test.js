'use strict'
// The direct mode on servers that say what a test wants: refuse, break off, answer late.
const assert = require('node:assert')
const test = require('node:test')
const pulse = require('..')
const { Direct } = require('../lib/direct')
const { Session } = require('../lib/session')

test('a session asks its client one query after the other', async () => {
  let [underWay, most] = [0, 0]
  const query = async () => {
    most = Math.max(most, ++underWay)
    await new Promise(setImmediate)
    underWay--
    return { rows: [most] }
  }
  const client = { on() {}, connect: async () => {}, query, end: async () => {} }
  const session = new Session(() => client, {})
  const answers = Array.from({ length: 3 }, () => session.query('SELECT 1'))
  assert.deepStrictEqual(await Promise.all(answers), [[1], [1], [1]])
})

// What a server says to a worker of the direct mode that has nothing to do.
const ANSWERS = [
  [/pg_backend_pid/, [{ pid: 1 }]],
  [/pg_extension/, [{ version: require('../package.json').version }]],
  [/register_worker/, [{ id: '1', beatMs: 60_000, sweepMs: -1 }]],
  [/heartbeat/, [{ status: 'alive', revoked: [], cancelled: [] }]],
]
const answerTo = (text) => ANSWERS.find(([asked]) => asked.test(text))?.[1] ?? []

const claimedRow = (id, token = '1') => ({ id, token, timeout: null, stall: null,
  text: '{"payload":{},"attempts":1,"identifier":"act"}' })
const idsOf = (literal) => [...literal.matchAll(/\d+/g)].map(([id]) => id)

const refusal = (code) => Object.assign(new Error(`refused: ${code}`), { severity: 'ERROR', code })

/** A worker on a server that says what `answer` says, and `claims` to its claims. */
function workerOn({ claims = [], answer = () => undefined, open = () => {}, act }) {
  const [wait, endWait] = promised()
  const query = async (text, values) => {
    const said = await answer(text, values)
    if (said) return { rows: said }
    if (/claim\(/.test(text)) return { rows: claims.shift() ?? [] }
    if (/wait_for_job/.test(text)) return { rows: await wait }
    if (/_many/.test(text)) return { rows: idsOf(values[0]).map(() => ({ outcome: 'accepted' })) }
    return { rows: answerTo(text) }
  }
  let sessions = 0
  const connect = () => ({ processID: 1, on() {}, query,
    connect: async () => { await open(); sessions++ }, end: async () => { sessions-- } })
  const tasks = new Map([['act', pulse.task('act', act)]])
  const direct = new Direct(connect, tasks, { takes: 5, grace: 0, name: 'test' })
  const served = direct.serve()
  const stop = () => { direct.stop(); endWait([]); return served }
  return { direct, served, stop, sessions: () => sessions }
}

function promised() {
  let resolve
  const promise = new Promise((act) => { resolve = act })
  return [promise, resolve]
}

test('a worker that may not start leaves no session open', async () => {
  const answers = { 'a pooler': [/pg_backend_pid/, [{ pid: 2 }]],
    'no extension': [/pg_extension/, []], 'no right': [/register_worker/] }
  for (const [why, [asked, rows]] of Object.entries(answers)) {
    const worker = workerOn({ answer: async (text) => {
      if (asked.test(text) && !rows) throw Object.assign(refusal('42501'), { message: why })
      return asked.test(text) && rows
    }, act() {} })
    await assert.rejects(worker.served, new RegExp(why))
    assert.strictEqual(worker.sessions(), 0)
  }
})

test('a session that the server has refused once is opened anew', async () => {
  let tries = 0
  const connect = async () => {
    if (tries++ === 0) throw refusal('53300')
  }
  const client = { on() {}, connect, query: async () => ({ rows: [1] }), end: async () => {} }
  const session = new Session(() => client, {})
  await assert.rejects(session.query('SELECT 1'), /refused/)
  assert.deepStrictEqual(await session.query('SELECT 1'), [1])
})

test('a claim of a job in hand ends the old claim', async () => {
  const jobs = []
  const act = (_, job) => {
    jobs.push(job)
    return new Promise(() => {})
  }
  const { stop } = workerOn({ claims: [[claimedRow('7', '1')], [claimedRow('7', '2')]], act })
  while (jobs.length < 2) await new Promise(setImmediate)
  assert.deepStrictEqual([jobs[0].signal.reason?.reason, jobs[1].signal.aborted], ['lost', false])
  assert.strictEqual(await stop(), false)
})

// The second claim breaks off, and the jobs are those that the worker holds.
async function runLost({ held, act }) {
  const [ended, end] = promised()
  const [waits, isWaiting] = promised()
  let claims = 0
  const runs = []
  const worker = workerOn({
    act: (_, job) => { runs.push(`${job.id} ${job.token}`); return act(job) },
    answer: async (text) => {
      if (/held\(/.test(text)) return held(ended)
      if (/_many/.test(text)) setImmediate(end)
      if (/claim\(/.test(text) && ++claims === 1) return [claimedRow('7', '1')]
      if (/claim\(/.test(text) && claims === 2) throw new Error('cut')
      if (/wait_for_job/.test(text)) isWaiting()
      return undefined
    },
  })
  await waits
  await worker.stop()
  return runs
}

test('a job that ends while a worker asks for what it holds runs once', async () => {
  const [gate, open] = promised()
  const held = async (ended) => {
    open()
    await ended
    return [claimedRow('7', '1'), claimedRow('8', '1')]
  }
  const runs = await runLost({ held, act: ({ id }) => (id === '7' ? gate : undefined) })
  assert.deepStrictEqual(runs, ['7 1', '8 1'])
})

test('a job in hand that a claim without an answer has claimed anew runs anew', async () => {
  const runs = await runLost({ held: () => [claimedRow('7', '2')],
    act: ({ token, signal }) => token === '1' && new Promise((resolve) => {
      signal.addEventListener('abort', resolve)
    }) })
  assert.deepStrictEqual(runs, ['7 1', '7 2'])
})

// A job that returns; resolves to the calls that have told the server of the end. `refuse` throws
// where the server refuses.
async function endsOf(refuse, act = () => 'done') {
  const { plain } = require('../lib/console')
  const before = plain.error
  plain.error = () => {}
  const [answered, isAnswered] = promised()
  const asked = []
  const worker = workerOn({ claims: [[claimedRow('7')]], act,
    answer: async (text, values) => {
      refuse(text)
      const [call] = /(?:complete|fail)_many/.exec(text) ?? []
      if (!call) return
      asked.push([call, ...values.slice(0, 3)].join(' '))
      refuse(call)
      isAnswered()
    } })
  await answered
  await worker.stop()
  plain.error = before
  return asked
}

for (const code of ['08006', '25006', '40001', '40P01', '53100', '53200', '53300', '55P03', '57014',
  '57P01', '58030']) {
  test(`an end is repeated that the server refuses for now: ${code}`, async () => {
    let refusals = 0
    const asked = await endsOf((call) => {
      if (call === 'complete_many' && refusals++ === 0) throw refusal(code)
    })
    const call = 'complete_many {"7"} {"1"} {"\\"done\\""}'
    assert.deepStrictEqual(asked, [call, call])
  })
}

// A standby, and a role without the right to log in.
for (const code of ['0A000', '28000']) {
  test(`an end waits for a session that the server does not open for now: ${code}`, async () => {
    let tries = 0
    const asked = await endsOf((text) => {
      if (text === 'complete_many' && tries === 0) {
        tries = 1
        throw new Error('cut')
      }
      if (tries === 1 && text.startsWith('SET transaction_read_only = off;')) {
        tries = 2
        throw refusal(code)
      }
    })
    const calls = asked.map((call) => call.split(' ')[0])
    assert.deepStrictEqual([...calls, tries], ['complete_many', 'complete_many', 2])
  })
}

test('an end whose data the server refuses fails the job, and says why', async () => {
  const asked = await endsOf((call) => { if (call === 'complete_many') throw refusal('22P02') })
  assert.deepStrictEqual(asked[1], 'fail_many {"7"} {"1"} {"the end was refused: refused: 22P02"}')
})

test('an answer or a checkpoint of more than a line fails the job, and says why', async () => {
  const large = 'x'.repeat(1 << 20)
  const acts = { answer: () => large, checkpoint: (_, job) => job.checkpoint(large) }
  for (const [what, act] of Object.entries(acts)) {
    const [asked] = await endsOf(() => {}, act)
    assert.match(asked, new RegExp(`^fail_many .*the ${what}.* has 1048\\d+ bytes, and a line`))
  }
})

test('large ends go to the server in several calls', async () => {
  const [told, isTold] = promised()
  const calls = []
  const worker = workerOn({ claims: [['1', '2', '3', '4', '5'].map((id) => claimedRow(id))],
    act: () => '"'.repeat(500_000),
    answer: async (text, [ids] = []) => {
      if (/complete_many/.test(text)) calls.push(idsOf(ids))
      if (calls.flat().length === 5) isTold()
    } })
  await told
  assert.strictEqual(await worker.stop(), true)
  assert.deepStrictEqual(calls, [['1', '2', '3', '4'], ['5']])
})

test('of many reports the newest goes, and the newest checkpoint, before the end', async () => {
  const calls = []
  const [ended, isEnded] = promised()
  const worker = workerOn({ claims: [[claimedRow('7')]],
    act: async (_, job) => {
      job.checkpoint({ row: 1 })
      await new Promise(setImmediate)
      for (let row = 1; row <= 1000; row++) {
        if (row === 2) job.checkpoint({ row })
        job.progress(row / 1000, { message: `row ${row}` })
      }
      throw new Error('the end')
    },
    answer: async (text, values) => {
      if (/progress\(/.test(text)) calls.push(values.slice(2, 5))
      if (/fail_many/.test(text)) isEnded(calls.push('end'))
    } })
  await ended
  await worker.stop()
  assert.deepStrictEqual(calls, [[undefined, undefined, '{"row":1}'],
    ['row 1000', 1, '{"row":2}'], 'end'])
})

test('an end waits for no report of another job but the one under way', async () => {
  const calls = []
  const [gate, open] = promised()
  const [ended, isEnded] = promised()
  const [told, isTold] = promised()
  const worker = workerOn({ claims: [['7', '8', '9'].map((id) => claimedRow(id))],
    act: async (_, job) => {
      if (job.id === '9') return isEnded()
      job.progress(0.5)
      await told
    },
    answer: async (text, values) => {
      const [call] = /progress|complete/.exec(text) ?? []
      if (call) calls.push(`${call} ${idsOf(values[0])}`)
      if (calls.length === 3) isTold()
      if (call === 'progress') await gate
    } })
  await ended
  // Until the end waits for its turn.
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
  open()
  await told
  await worker.stop()
  assert.deepStrictEqual(calls.slice(0, 3), ['progress 7', 'complete 9', 'progress 8'])
})

test('a worker says why its server is away, each reason once, and when it is back', async (t) => {
  const { plain } = require('../lib/console')
  const [back, isBack] = promised()
  const said = []
  t.mock.method(plain, 'error', (line) => {
    said.push(line)
    if (/again/.test(line)) isBack()
  })
  let isAway = false
  let tries = 0
  const worker = workerOn({
    act() {},
    answer: (text) => {
      if (/wait_for_job/.test(text) && tries === 0) isAway = true
      if (isAway) throw new Error('terminated')
    },
    open: () => {
      if (isAway && ++tries === 4) isAway = false
      if (isAway && tries < 3) throw new AggregateError([new Error('refused')])
      if (isAway) throw refusal('57P03')
    },
  })
  await back
  await worker.stop()
  assert.deepStrictEqual(said, ['terminated', 'refused', 'refused: 57P03'].map((reason) =>
    `pg-pulse: reconnecting: ${reason}`).concat('pg-pulse: connected again'))
})

test('a report that the server refuses is told of, and so is a sweep', async () => {
  const { plain } = require('../lib/console')
  const query = async (text) => {
    const [asked] = /progress|sweep/.exec(text) ?? []
    if (asked) throw Object.assign(new Error(`no ${asked}`), { severity: 'ERROR', code: '54000' })
    return { rows: [] }
  }
  let notice
  const on = (event, listener) => { if (event === 'notice') notice = listener }
  const client = { processID: 1, on, connect: async () => {}, query, end: async () => {} }
  const direct = new Direct(() => client, new Map(), { takes: 1, grace: 0, name: 'test' })
  const before = plain.error
  try {
    const told = (act) => new Promise((resolve) => { plain.error = resolve; act() })
    const report = () => direct.tell({ id: '1', token: '1', stallMs: null }, { progress: 0.5 })
    assert.strictEqual(await told(report), 'pg-pulse: no progress')
    assert.strictEqual(await told(() => notice({ code: 'PU100' })), 'pg-pulse: no sweep')
  } finally {
    plain.error = before
  }
})

test('a wait for jobs on a server that is gone without a word ends', async (t) => {
  const { setTimeout } = globalThis
  globalThis.setTimeout = (act, ms, ...rest) => setTimeout(act, ms / 1000, ...rest)
  t.after(() => { globalThis.setTimeout = setTimeout })
  let waits = 0
  const connect = () => {
    let cut
    const isCut = new Promise((_, reject) => { cut = () => reject(new Error('cut')) })
    isCut.catch(() => {})
    const query = async (text) => {
      if (/wait_for_job/.test(text)) {
        if (++waits === 2) direct.stop()
        return isCut
      }
      return { rows: answerTo(text) }
    }
    return { processID: 1, connection: { stream: { destroy: cut } }, on() {}, query,
      connect: async () => {}, end: async () => {} }
  }
  const act = pulse.task('act', () => {})
  const options = { takes: 5, grace: 0, name: 'test' }
  const direct = new Direct(connect, new Map([['act', act]]), options)
  assert.strictEqual(await direct.serve(), true)
  assert.strictEqual(waits, 2)
})

test('a second signal counts when it comes five seconds after the first', () => {
  const direct = new Direct(() => ({}), new Map(), { takes: 1, grace: 60_000, name: 'test' })
  const told = []
  direct.stop = () => told.push('stop')
  direct.giveUp = () => told.push('give up')
  for (const at of [1000, 1001, 5999, 6001]) direct.signalled(at)
  assert.deepStrictEqual(told, ['stop', 'give up'])
})
