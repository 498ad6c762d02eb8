'use strict'
// The program mode: lines of JSON to and from the worker that has started this program
// (docs/programs.md). One socket, any number of jobs at once.
//
// Always holds: a job in #running has no answer yet; each job gets one answer, and no line after
// the answer.
const { Socket } = require('node:net')
const { current } = require('./console')
const { Job } = require('./job')
const { NotJson } = require('./json')
const { ofThrown, ofValue } = require('./outcome')
const { run } = require('./task')

const PROTOCOL = 1
// A line of the program, as the worker bounds it; texts of logs and progress.
const MAX_LINE_BYTES = 1024 * 1024
const MAX_LOG = 8 * 1024
const MAX_MESSAGE = 1024

class Program {
  #socket
  #tasks
  #running = new Map()
  #rest = ''
  #out = ''
  #isEnding = false
  #ended

  constructor(socket, tasks) {
    this.#socket = socket
    this.#tasks = tasks
  }

  /** Speaks first, then runs jobs until the worker sends no more; resolves when all have ended. */
  serve(hello) {
    this.#say(JSON.stringify({ hello }))
    this.#socket.setEncoding('utf8')
    this.#socket.on('data', (text) => this.#receive(text))
    return new Promise((resolve, reject) => {
      this.#ended = resolve
      this.#socket.on('end', () => { this.#isEnding = true; this.#endIfIdle() })
      this.#socket.on('error', (error) => {
        for (const job of this.#running.values()) job.cancel('lost', 0)
        reject(error)
      })
    })
  }

  #receive(text) {
    const lines = text.split('\n')
    lines[0] = this.#rest + lines[0]
    this.#rest = lines.pop()
    for (const line of lines) this.#handle(line)
  }

  #handle(line) {
    const message = JSON.parse(line)
    if (!('cancel' in message)) return this.#start(message, line)
    this.#running.get(message.cancel)?.cancel(message.reason, message.grace_ms)
  }

  #start(message, line) {
    const job = new Job(this, message, line)
    this.#running.set(job.key, job)
    current.run(job, () => run(this.#tasks.get(message.task), job)
      .then((value) => this.#succeed(job, value), (thrown) => this.#fail(job, thrown)))
  }

  #succeed(job, value) {
    try {
      this.#answer(job, ofValue(job, value))
    } catch (error) {
      this.#fail(job, error)
    }
  }

  // An end that is no JSON, or too large, is an error in its turn.
  #fail(job, thrown) {
    try {
      this.#answer(job, ofThrown(thrown))
    } catch (error) {
      this.#answer(job, ofThrown(error))
    }
  }

  /** The one answer of a job: members of the line, each as JSON. */
  #answer(job, members) {
    if (job.isOver) return
    const words = Object.entries(members).map(([name, text]) => `"${name}":${text}`)
    const line = `{"id":${JSON.stringify(job.key)},${words.join()}}`
    this.#check(line, `the answer of ${job.identifier}`)
    job.isOver = true
    this.#running.delete(job.key)
    if (this.#out === '') setImmediate(() => this.#flush())
    this.#out += `${line}\n`
    this.#endIfIdle()
  }

  #check(line, what) {
    if (line.length < MAX_LINE_BYTES / 3) return
    const bytes = Buffer.byteLength(line)
    if (bytes < MAX_LINE_BYTES) return
    throw new NotJson(`${what} has ${bytes} bytes, and a line has at most ${MAX_LINE_BYTES}: ` +
      'store it elsewhere, and give its place')
  }

  progress(job, { progress, message, stage }) {
    const shown = (text) => (text == null ? undefined : String(text).slice(0, MAX_MESSAGE))
    this.#tell(job, { progress, message: shown(message), stage: shown(stage) })
  }

  checkpoint(job, text) {
    if (job.isOver) return
    const line = `{"id":${JSON.stringify(job.key)},"checkpoint":${text}}`
    this.#check(line, 'the checkpoint')
    this.#say(line)
  }

  log(job, text, level) {
    this.#tell(job, { log: text.slice(0, MAX_LOG), level })
  }

  #tell(job, members) {
    if (!job.isOver) this.#say(JSON.stringify({ id: job.key, ...members }))
  }

  // At once: the handler may keep the loop busy next.
  #say(line) {
    this.#out += `${line}\n`
    this.#flush()
  }

  #flush() {
    const text = this.#out
    this.#out = ''
    if (text !== '') this.#socket.write(text)
  }

  #endIfIdle() {
    if (!this.#isEnding || this.#running.size > 0) return
    this.#flush()
    this.#socket.end(() => this.#ended())
  }
}

/** Serves the tasks over the socket that this descriptor is. */
async function serveProgram(fd, tasks, { takes, name }) {
  const socket = new Socket({ fd, readable: true, writable: true, allowHalfOpen: true })
  const settings = Object.fromEntries([...tasks].map(([identifier, task]) =>
    [identifier, task.takes === undefined ? {} : { takes: task.takes }]))
  await new Program(socket, tasks).serve({ protocol: PROTOCOL, takes, tasks: settings, name })
}

module.exports = { serveProgram }
