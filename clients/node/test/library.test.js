'use strict'
// What the library promises without a server: its names, its errors, its tasks, its JSON.
const assert = require('node:assert')
const fs = require('node:fs')
const path = require('node:path')
const test = require('node:test')
const pulse = require('..')
const { translate } = require('../lib/errors')
const functions = require('../lib/generated/functions')
const { memberText } = require('../lib/json')
const { current } = require('../lib/console')
const { Job } = require('../lib/job')
const { encode } = require('../lib/json')
const { attempt, errorText } = require('../lib/outcome')
const { runJobs } = require('../testing')

const folder = path.dirname(__dirname)
const generated = ['errors', 'functions'].map((name) => `lib/generated/${name}.d.ts`)
const declared = ['index.d.ts', ...generated].flatMap((file) =>
  [
    ...fs
      .readFileSync(path.join(folder, file), 'utf8')
      .matchAll(/^export (?:function|class) (\w+)/gm),
  ].map(([, name]) => name),
)
// A function may have several signatures.
const typed = [...new Set(declared)]

test('require, import and the types have the same names', async () => {
  const names = Object.keys(pulse).sort()
  assert.deepStrictEqual(Object.keys(await import('../index.mjs')).sort(), names)
  assert.deepStrictEqual([...typed].sort(), names)
})

test('two copies of the library know the words of each other', async () => {
  const copy = fs.mkdtempSync(path.join(require('node:os').tmpdir(), 'pg-pulse-'))
  try {
    fs.cpSync(folder, copy, { recursive: true })
    const other = require(copy)
    assert.notStrictEqual(other.Failure, pulse.Failure)
    const endOf = (handler) => attempt({ handler }, { identifier: 'act' })
    const refusal = await endOf(() => { throw new other.Failure('no', { retry: false }) })
    assert.strictEqual(refusal.retry, false)
    assert.strictEqual(encode((await endOf(() => other.json('1.10'))).result), '1.10')
    const logged = []
    const job = { isOver: false, log: (text) => logged.push(text) }
    const plain = { log: (text) => logged.push(`plain ${text}`) }
    for (const each of [require('../lib/console'), require(`${copy}/lib/console`)]) {
      each.route(new Proxy(plain, { get: (target, name) => target[name] ?? (() => {}) }))
    }
    require('../lib/console').current.run(job, () => plain.log('of a job'))
    plain.log('of none')
    assert.deepStrictEqual(logged, ['of a job', 'plain of none'])
  } finally {
    fs.rmSync(copy, { recursive: true })
  }
})

test('an error of the server becomes one with its code and a way out', () => {
  const lost = translate(
    Object.assign(new Error('the claim is lost'), { code: 'PU001', hint: 'Stop.' }),
  )
  assert.ok(lost instanceof pulse.ClaimLost && lost instanceof pulse.PulseError)
  assert.strictEqual(lost.message, 'the claim is lost\nHINT: Stop.')
  assert.strictEqual(lost.name, 'ClaimLost')
  assert.strictEqual(lost.code, 'PU001')
  const other = Object.assign(new Error('duplicate key'), { code: '23505' })
  assert.strictEqual(translate(other), other)
  const codes = fs
    .readFileSync(path.join(folder, '../../docs/errors.md'), 'utf8')
    .matchAll(/^\| `(PU0\d\d)` /gm)
  for (const [, code] of codes) {
    assert.notStrictEqual(
      translate({ code, message: code }).constructor,
      Object,
      `${code} has a class`,
    )
  }
})

test('a member of a document keeps its digits', () => {
  const text =
    '{"id":"1","payload" : {"n": 9007199254740993.10, "payload": 1} ,"job":{"checkpoint":[1]}}'
  assert.strictEqual(memberText(text, 'payload'), '{"n": 9007199254740993.10, "payload": 1}')
  assert.strictEqual(memberText(memberText(text, 'job'), 'checkpoint'), '[1]')
  assert.strictEqual(memberText(text, 'checkpoint'), undefined)
  const long = JSON.stringify({ text: '\\"'.repeat(1 << 19), last: 2 })
  assert.strictEqual(memberText(long, 'last'), '2')
})

test('json(text) is a whole document', () => {
  assert.throws(() => pulse.json('{'), SyntaxError)
  assert.throws(() => JSON.stringify({ part: pulse.json('1') }), pulse.NotJson)
  const proxy = new Proxy(() => {}, { get: () => () => 'all' })
  assert.strictEqual(encode(proxy, 'it'), '"all"', 'a proxy is no such document')
})

test('the text of an error is bounded, and cut between characters', () => {
  const text = errorText('é'.repeat(8000))
  assert.ok(Buffer.byteLength(text) < 8192)
  assert.match(text, /^é+…$/)
  assert.strictEqual(errorText('half \ud83d'), 'half \ufffd')
})

test('the text of an error that stands for several has them all', () => {
  const tries = ['::1', '127.0.0.1'].map((address) => new Error(`refused by ${address}`))
  const text = errorText(new Error('no answer', { cause: new AggregateError(tries) }))
  assert.match(text, /^Error: no answer[^]*refused by ::1[^]*refused by 127\.0\.0\.1/)
})

test('what is no task is refused at once', () => {
  assert.throws(() => pulse.task('', () => {}), /the name of the task/)
  assert.throws(() => pulse.task('mail'), /task mail has no handler/)
  assert.throws(() => pulse.task('mail', () => {}, { schema: {} }), /no Standard Schema/)
})

function jobWith(told) {
  const tell = (job, members) => told.push(JSON.parse(JSON.stringify(members)))
  return new Job({ tell }, { id: '1', payload: {}, job: { id: '1' } })
}

test('what a job says of itself, also by methods that a handler has taken out', () => {
  const told = []
  const { progress, log, snooze } = jobWith(told)
  progress(0.5, { message: 'half \0', stage: 2 })
  progress(undefined, { message: 'x'.repeat(5000) })
  log('two\nlines')
  assert.deepStrictEqual(told, [
    { progress: 0.5, message: 'half ', stage: '2' },
    { message: 'x'.repeat(1024) },
    { log: 'two\nlines', level: 'info' },
  ])
  progress(undefined, { message: `${'x'.repeat(1023)}🙂` })
  log(`${'x'.repeat(3999)}🙂`)
  assert.deepStrictEqual(told.slice(3).map(({ message, log }) => (message ?? log).at(-1)),
    ['\ufffd', '\ufffd'])
  for (const wrong of [50, -1, NaN, 'half', '0.5', true]) {
    assert.throws(() => progress(wrong), /a fraction from 0 to 1, and not/)
  }
  for (const wrong of [-1, NaN, '5 minutes', null]) {
    assert.throws(() => snooze(wrong), /the delay is .*, and no number of seconds/)
    assert.throws(() => new pulse.Failure('no', { retryIn: wrong }), /retryIn is/)
  }
})

test('what each method of console prints goes to the log of the job', () => {
  const printed = []
  const logged = []
  const stream = { write: (text) => printed.push(text), on() {}, once() {}, removeListener() {} }
  const own = new console.Console(stream)
  require('../lib/console').route(own)
  current.run({ log: (text) => logged.push(text) }, () => {
    for (const method of ['log', 'info', 'warn', 'error', 'debug', 'dir', 'dirxml', 'trace',
      'table', 'group', 'count']) own[method]('x')
    own.assert(false, 'x')
  })
  assert.deepStrictEqual([printed, logged.length], [[], 12])
})

test('a program that calls work() again and again has one routing of its console', () => {
  const own = new console.Console({ write() {}, on() {}, once() {}, removeListener() {} })
  const { route } = require('../lib/console')
  route(own)
  const once = { ...own }
  route(own)
  assert.deepStrictEqual({ ...own }, once)
  const mine = () => {}
  own.log = mine
  route(own)
  assert.notStrictEqual(own.log, mine, 'a method that the program has set is routed')
})

test('ids of parents are texts, as all ids', () => {
  const job = { id: '9', parents: [{ id: 7, key: 'a', state: 'completed', result: { id: 1 } }] }
  assert.deepStrictEqual(new Job({}, { id: '9', job }).parents, [
    { id: '7', key: 'a', state: 'completed', result: { id: 1 } },
  ])
  assert.strictEqual(jobWith([]).parents, null)
})

test('what a handler does when its signal comes is of its job', () => {
  const job = jobWith([])
  const seen = []
  job.signal.addEventListener('abort', () => seen.push(current.getStore()))
  job.cancel('cancelled', 1)
  assert.deepStrictEqual(seen, [job])
})

test('options that are null are none', async () => {
  const texts = []
  const db = { query: async (text) => { texts.push(text); return [] } }
  for (const options of [[], [null]]) {
    await pulse.addJob(db, 'x', {}, ...options)
    await pulse.addFlow(db, [], ...options)
    await pulse.ended(db, [], ...options)
    await pulse.task('x', () => {}).add(db, {}, ...options)
  }
  assert.deepStrictEqual(texts.slice(0, 4), texts.slice(4))
})

test('a wrong argument is refused', async () => {
  const db = { query: async () => [] }
  const refused = (call, message) => assert.rejects(async () => call(), { message })
  await refused(() => pulse.addJobs(db, [{ identifier: 'x', paylod: 1 }]), /has no paylod/)
  await refused(() => pulse.addJob(db, 'x', {}, { unique: { by: [] } }), /unique has for, by/)
  await refused(() => pulse.addJob(db, 'x', {}, { unique: { for: 1, bye: [] } }), /has for, by/)
  await refused(() => pulse.uniqueKey({ a: 1 }, 'a'), /by is a list of members/)
})

test('what is no list is refused, and not an empty one', async () => {
  let count = 0
  const db = { query: async () => { count++; return [] } }
  const lists = {
    jobIds: [pulse.ended, pulse.waitForEnd, pulse.completeJobs, pulse.rescheduleJobs],
    workerNames: [pulse.drainWorkers], specs: [pulse.addJobs], jobs: [pulse.addFlow],
    tasks: [(_, value) => pulse.work(value), runJobs],
    flags: [(_, flags) => pulse.addJob(db, 'x', {}, { flags }),
      (_, flags) => pulse.addJobs(db, [{ identifier: 'x', flags }]),
      (_, flags) => pulse.addFlow(db, [{ identifier: 'x', flags }])],
    after: [(_, after) => pulse.addFlow(db, [{ identifier: 'x', after }]), pulse.addJobAfter,
      (_, after) => pulse.addDependency(db, 1, after)],
  }
  const values = [['12', "'12'"], [7, '7'], [12n, '12n'], [{ id: '1' }, "{ id: '1' }"]]
  for (const [name, calls] of Object.entries(lists)) {
    for (const [value, shown] of values) {
      for (const call of calls) {
        await assert.rejects(async () => call(db, value, 'x'),
          { name: 'TypeError', message: `${name}: a list is wanted, and ${shown} is given` })
      }
    }
  }
  await assert.rejects(pulse.ended(db, null), /jobIds: a list is wanted, and null is given/)
  for (const by of ['', 0, false]) assert.throws(() => pulse.uniqueKey({}, by), /a list of members/)
  assert.strictEqual(count, 0)
  for (const flags of [null, undefined, new Set('a')]) await pulse.addJob(db, 'x', {}, { flags })
  await pulse.ended(db, new Set(['1']))
})

test('an argument that must be given and is undefined is named', async () => {
  const db = { query: async () => [] }
  for (const [name, { given }] of Object.entries(functions)) {
    for (const argument of given.filter((each) => each !== 'payload')) {
      const rest = given.map((each) => (each === argument ? undefined : []))
      await assert.rejects(pulse[name](db, ...rest, {}),
        { name: 'TypeError', message: `${name} wants ${argument}` })
    }
  }
})

test('a time that is none, and half of a character, are refused in each place', async () => {
  const db = { query: async () => [] }
  const ways = [(member) => pulse.addJob(db, 'x', {}, member),
    (member) => pulse.addJobs(db, [{ identifier: 'x', ...member }]),
    (member) => pulse.addFlow(db, [{ identifier: 'x', ...member }])]
  const refusals = [[{ runAt: new Date(NaN) }, /^RangeError: run_?[aA]t is an invalid Date/],
    ...[{ jobKey: 'a\ud83d' }, { queueName: '\ude42b' }, { flags: ['ok', '\ud83d'] }].map(
      (member) => [member, /^TypeError: .* is ".*\\ud[8e].*", which has half of a surrogate/])]
  for (const [member, refusal] of refusals) {
    for (const way of ways) await assert.rejects(way(member), refusal)
  }
  assert.throws(() => pulse.task('a\ud83d', () => {}), /name of the task is .* half of a surr/)
  assert.strictEqual(encode(pulse.json('"\ud83d 🙂"'), 'it'), '"\\ud83d 🙂"')
})

test('what is no number of jobs is refused at once', async () => {
  const mail = pulse.task('mail', () => {})
  for (const takes of [0, -1, 1.5, NaN, '7', 10_001]) {
    await assert.rejects(pulse.work([mail], { takes }), /^RangeError: takes is .*from 1 to 10,000/)
    assert.throws(() => pulse.task('mail', () => {}, { takes }), /^RangeError: takes is/)
  }
})

test('a client of the direct mode gives up a host that says nothing', () => {
  const application = fs.mkdtempSync(path.join(require('node:os').tmpdir(), 'pg-pulse-'))
  const before = process.cwd()
  try {
    fs.mkdirSync(`${application}/node_modules/pg`, { recursive: true })
    fs.writeFileSync(`${application}/node_modules/pg/index.js`,
      'exports.Client = function (settings) { this.settings = settings }')
    process.chdir(application)
    const { connector } = require('../lib/driver')
    const waitOf = (connection) => connector(connection)().settings.connectionTimeoutMillis
    assert.deepStrictEqual([waitOf(), waitOf({ connectionTimeoutMillis: 5 })], [10_000, 5])
  } finally {
    process.chdir(before)
    fs.rmSync(application, { recursive: true })
  }
})

test('what is no time of grace is refused at once', async () => {
  const mail = pulse.task('mail', () => {})
  for (const grace of [-1, NaN, Infinity, 2 ** 31, '25']) {
    await assert.rejects(pulse.work([mail], { grace }), /^RangeError: grace is .*of milliseconds/)
  }
})

test('a key is that of the payload that is stored, and has whole characters', async () => {
  const keyOf = async (...payload) => {
    let values
    const query = async (_, given) => { values = given; return [] }
    await pulse.addJob({ query }, 'x', ...payload, { unique: { for: 1 } })
    return values[1]
  }
  assert.deepStrictEqual([await keyOf(undefined), await keyOf(null)], ['{}', 'null'])
  for (const half of [{ t: '\ud83d' }, { '\ude42': 1 }]) {
    assert.throws(() => pulse.uniqueKey(half), /half of a surrogate pair/)
  }
})

test('seconds have no exponent, which no interval has', async () => {
  let given
  const query = async (_, values) => { given = values; return [] }
  await pulse.setTask({ query }, 'x', { timeout: 1e-7 })
  assert.deepStrictEqual(given, ['x', '0.000000 seconds'])
})

test('what is no list of tasks is refused at once', async () => {
  const mail = pulse.task('mail', () => {})
  await assert.rejects(pulse.work([]), /no task to serve/)
  await assert.rejects(pulse.work([mail, mail]), /the task mail twice/)
  await assert.rejects(pulse.work([() => {}]), /what task\(\) returns/)
  await assert.rejects(pulse.work([mail]), /a pulse-worker starts this program/)
})
