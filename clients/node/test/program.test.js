'use strict'
// The lines of the program mode, spoken to a program of this test over a socket.
const assert = require('node:assert')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const path = require('node:path')
const { createInterface } = require('node:readline')
const test = require('node:test')

const program = `
  const { task, work } = require(${JSON.stringify(path.dirname(__dirname))})
  const echo = task('echo', (payload, job) =>
    ({ payload, id: job.id, token: job.token, database: job.database }))
  const say = task('say', (payload) => { console.log(payload); return 'said' })
  const stack = task('stack', () => console.error(new Error('it broke')))
  const later = task('later', (payload, job) => {
    setImmediate(() => {
      job.progress(1)
      job.checkpoint(1)
      job.log('late')
      console.log('of no job')
    })
    return 'first'
  })
  work([echo, say, stack, later], { takes: 7, name: 'test' })
    .then(() => console.log('ended'))`

// A program whose test has failed would hold up the end of the file.
const programs = []
test.after(() => programs.forEach((child) => child.kill()))

/** A program, and a function that gives its next line. */
function start(source = program) {
  const child = spawn(process.execPath, ['-e', source], {
    env: { ...process.env, PULSE_FD: '3' },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  programs.push(child)
  const socket = child.stdio[3]
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]()
  let stderr = ''
  child.stderr.on('data', (text) => {
    stderr += text
  })
  return {
    child,
    socket,
    next: async () => JSON.parse((await lines.next()).value),
    give: (message) => socket.write(`${JSON.stringify(message)}\n`),
    end: () =>
      new Promise((resolve) => {
        child.on('close', (code) => resolve({ code, stderr }))
        socket.end()
      }),
  }
}

test('the program speaks first, and gives each id back as it came', async () => {
  const { next, give, end } = start()
  assert.deepStrictEqual(await next(), {
    hello: {
      protocol: 1,
      takes: 7,
      tasks: { echo: {}, say: {}, stack: {}, later: {} },
      name: 'test',
    },
  })
  const job = {
    id: '9007199254740995',
    token: '9223372036854775807',
    identifier: 'echo',
    database: 'shop',
  }
  give({ id: 'shop:9007199254740995', task: 'echo', payload: [1], job })
  assert.deepStrictEqual(await next(), {
    id: 'shop:9007199254740995',
    result: {
      payload: [1],
      id: '9007199254740995',
      token: '9223372036854775807',
      database: 'shop',
    },
  })
  assert.deepStrictEqual(await end(), { code: 0, stderr: '' })
})

test('lines that come in pieces, and several at once', async () => {
  const { socket, next, end } = start()
  await next()
  const line = (n) =>
    `{"id":"${n}","task":"echo","payload":"é${'x'.repeat(300000)}","job":{"id":"${n}"}}\n`
  const bytes = Buffer.from(line(1) + line(2) + line(3))
  const cut = bytes.indexOf(0xc3) + 1 // within a character
  socket.write(bytes.subarray(0, cut))
  socket.write(bytes.subarray(cut))
  for (const id of ['1', '2', '3']) assert.strictEqual((await next()).id, id)
  await end()
})

test('what a handler prints comes before its answer', async () => {
  const { next, give, end } = start()
  await next()
  give({ id: '1', task: 'say', payload: 'two\nlines', job: { id: '1' } })
  assert.deepStrictEqual(await next(), { id: '1', log: 'two\nlines', level: 'info' })
  assert.deepStrictEqual(await next(), { id: '1', result: 'said' })
  await end()
})

test('a stack that a handler prints is one line', async () => {
  const { next, give, end } = start()
  await next()
  give({ id: '1', task: 'stack', payload: null, job: { id: '1' } })
  const { log, level } = await next()
  assert.match(log, /^Error: it broke\n    at .*\n    at /)
  assert.strictEqual(level, 'error')
  assert.deepStrictEqual(await next(), { id: '1', result: null })
  await end()
})

test('what a job says behind its answer is not written', async () => {
  const { child, next, give, end } = start()
  await next()
  give({ id: '1', task: 'later', payload: null, job: { id: '1' } })
  assert.deepStrictEqual(await next(), { id: '1', result: 'first' })
  const [printed] = await once(child.stdout, 'data')
  assert.strictEqual(String(printed), 'of no job\n')
  give({ id: '2', task: 'echo', payload: 2, job: { id: '2' } })
  assert.strictEqual((await next()).id, '2')
  await end()
})

test('a second call of work() is refused, and says which copy has the jobs', async () => {
  const twice = start(`${program}
    work([task('other', () => {})]).catch((error) => console.error(error.message))`)
  await twice.next()
  assert.match(
    (await twice.end()).stderr,
    /work\(\) of pg-pulse \d.* has the jobs of this program/,
  )
})
