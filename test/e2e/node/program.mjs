// A program of the library for Node whose handlers do what the payload says. The file that its only
// argument names gets a line for each event of a handler.
import { spawn, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import { setTimeout as pause } from 'node:timers/promises'

const { Failure, json, task, work } = await import(`${process.env.CLIENTS}/node/index.mjs`)
const told = process.argv[2]
const tell = (...words) => fs.appendFileSync(told, `${words.join(' ')}\n`)

async function waitForGate(gate, signal) {
  while (!fs.existsSync(gate)) {
    signal?.throwIfAborted()
    await pause(20)
  }
}

function circle() {
  const value = { name: 'circle' }
  value.self = value
  return value
}

let pool
function database() {
  const pg = createRequire(process.env.DRIVER)('pg')
  // A pool whose idle session ends with the server tells, and nobody need do anything.
  pool ??= new pg.Pool({ max: 4 }).on('error', () => {})
  return pool
}

// In one transaction: the effect, and the end of the job. `dies` says where the program is killed
// in the first attempt.
async function completeOnce({ dies, gate }, job) {
  const kill = (where) => {
    if (dies === where && job.attempt === 1) process.kill(process.pid, 'SIGKILL')
  }
  const client = await database().connect()
  try {
    await client.query('BEGIN')
    await client.query('INSERT INTO effect VALUES ($1)', [job.id])
    kill('before the end')
    await job.complete(client, { by: 'the handler' })
    kill('before the commit')
    await client.query(dies === 'never commits' ? 'ROLLBACK' : 'COMMIT')
    kill('after the commit')
    if (gate) job.progress(0.5) || await waitForGate(gate)
  } finally {
    client.release()
  }
}

const lines = async ({ gate, count }, job) => {
  await waitForGate(gate)
  const texts = Array.from({ length: count }, (_, i) => `line ${i + 1} of job ${job.id}`)
  for (const text of texts) {
    console.log('%s', text)
    await pause(Number(job.id) % 3)
  }
}

// Behind ten calls.
const stack = (text, calls = 10) => (calls ? stack(text, calls - 1) : new Error(text))

const deeds = {
  echo: (payload) => payload.value,
  undefined: () => undefined,
  bigint: () => 2n ** 60n,
  nan: () => NaN,
  date: () => new Date(0),
  large: () => 'x'.repeat(20 * 1024 * 1024),
  circle: () => circle(),
  exact: () => json('{"n": 9007199254740993,\n"f": 1.10}'),
  ask: (_, job) => ({ id: job.id, token: job.token, attempt: job.attempt, last: job.lastCheckpoint,
    text: job.payloadText, at: job.runAt.getTime(), queue: job.queueName, key: job.jobKey }),
  'throw null': () => { throw null },
  'throw undefined': () => { throw undefined },
  'throw text': () => { throw 'only a text' },
  'throw circle': () => { throw circle() },
  'throw hostile': () => { throw { get [Symbol.toStringTag]() { throw 1 } } },
  'throw error': () => { throw new Error('it broke', { cause: new Error('of this') }) },
  'throw large': () => { throw new Error('y'.repeat(3 << 20)) },
  'for good': () => { throw new Failure('no such address', { retry: false }) },
  later: () => { throw new Failure('not now', { retryIn: 3600 }) },
  rest: () => { throw new Failure('a part is left', { payload: { do: 'echo', value: 'rest' } }) },
  'large rest': () => { throw new Failure('a part is left', { payload: 'z'.repeat(2 << 20) }) },
  snooze: (_, job) => job.lastCheckpoint ? job.lastCheckpoint
    : job.snooze(1e-7, { checkpoint: { seen: true } }),
  'snooze circle': (_, job) => job.snooze(0, { checkpoint: circle() }),
  report: (_, job) => {
    job.progress(0.5, { message: 'half', stage: 'copy' })
    job.checkpoint({ at: job.attempt })
    if (job.attempt === 1) throw new Error('once more')
    return job.lastCheckpoint
  },
  'large checkpoint': (_, job) => job.checkpoint('c'.repeat(2 << 20)),
  gate: ({ gate }, job) => waitForGate(gate, job.signal),
  deaf: ({ gate }) => waitForGate(gate),
  obey: (_, job) => new Promise((resolve, reject) => job.signal.addEventListener('abort', () => {
    tell('told', job.id, job.signal.reason.reason, job.signal.reason.graceMs)
    reject(job.signal.reason)
  })),
  never: () => new Promise(() => {}),
  block: ({ gate }) => { while (!fs.existsSync(gate)); },
  fork: () => {
    const { stdout } = spawnSync('ls', ['-l', '/proc/self/fd'], { encoding: 'utf8' })
    spawn('tail', ['-f', '/dev/null'], { detached: true, stdio: 'ignore' }).unref()
    // The first three are pipes of spawnSync, which are sockets, too.
    const sockets = [...stdout.matchAll(/ (\d+) -> socket:/g)].filter(([, fd]) => fd > 2)
    return { sockets: sockets.length, descriptor: process.env.PULSE_FD ?? null }
  },
  'fork itself': () =>
    spawnSync(process.execPath, process.argv.slice(1), { encoding: 'utf8' }).stderr,
  'after its end': (_, job) => {
    setImmediate(() => { job.progress(1); console.log('behind the end') })
  },
  exit: () => process.exit(7),
  complete: completeOnce,
  lines,
  stacks: (payload) => {
    for (let n = 1; n <= payload.count; n++) console.error(stack(`stack ${n}`))
    console.log('behind the stacks')
  },
  'beyond all': (payload, job) => job.progress(50),
}

const act = task('act', async (payload, job) => {
  tell('began', job.id, job.attempt, process.pid)
  return deeds[payload.do](payload, job)
})
const few = task('few', async ({ gate }) => waitForGate(gate), { takes: 2 })
const list = task('list', async (payload) => payload.length)
// A schema as any library of Standard Schema has it.
const checked = task('checked', async ({ to }) => to, { schema: { '~standard': {
  version: 1, vendor: 'test',
  validate: (value) => (typeof value?.to === 'string' ? { value: { to: value.to.trim() } }
    : { issues: [{ message: 'a text is wanted', path: ['to'] }] }),
} } })

console.log('started outside of jobs')
await work([act, few, list, checked],
  { takes: 30, name: 'node', grace: Number(process.env.GRACE ?? 0) })
tell('ended')
await pool?.end()
