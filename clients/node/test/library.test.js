'use strict'
// What the library promises without a server: its names, its errors, its tasks, its JSON.
const assert = require('node:assert')
const fs = require('node:fs')
const path = require('node:path')
const test = require('node:test')
const pulse = require('..')
const { translate } = require('../lib/errors')
const { memberText } = require('../lib/json')
const { errorText } = require('../lib/outcome')

const folder = path.dirname(__dirname)
const typed = ['index.d.ts', 'lib/generated/functions.d.ts'].flatMap((file) =>
  [
    ...fs
      .readFileSync(path.join(folder, file), 'utf8')
      .matchAll(/^export (?:function|class) (\w+)/gm),
  ].map(([, name]) => name),
)

test('require, import and the types have the same names', async () => {
  const names = Object.keys(pulse).sort()
  assert.deepStrictEqual(Object.keys(await import('../index.mjs')).sort(), names)
  assert.deepStrictEqual([...typed].sort(), names)
})

test('two copies of the library know the words of each other', () => {
  const copy = fs.mkdtempSync(path.join(require('node:os').tmpdir(), 'pg-pulse-'))
  try {
    fs.cpSync(folder, copy, { recursive: true })
    const other = require(copy)
    assert.notStrictEqual(other.Failure, pulse.Failure)
    const { ofThrown, ofValue } = require('../lib/outcome')
    assert.strictEqual(ofThrown(new other.Failure('no', { retry: false })).retry, 'false')
    assert.strictEqual(ofValue({ identifier: 'act' }, other.json('1.10')).result, '1.10')
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
})

test('the text of an error is bounded, and cut between characters', () => {
  const text = errorText('é'.repeat(8000))
  assert.ok(Buffer.byteLength(text) < 8192)
  assert.match(text, /^é+…$/)
})

test('what is no task is refused at once', () => {
  assert.throws(() => pulse.task('', () => {}), /the name of the task/)
  assert.throws(() => pulse.task('mail'), /task mail has no handler/)
  assert.throws(() => pulse.task('mail', () => {}, { schema: {} }), /no Standard Schema/)
})

test('what is no list of tasks is refused at once', async () => {
  const mail = pulse.task('mail', () => {})
  await assert.rejects(pulse.work([]), /no task to serve/)
  await assert.rejects(pulse.work([mail, mail]), /the task mail twice/)
  await assert.rejects(pulse.work([() => {}]), /what task\(\) returns/)
  await assert.rejects(pulse.work([mail]), /a pulse-worker starts this program/)
})
