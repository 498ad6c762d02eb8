'use strict'
// The program mode: lines of JSON to and from the worker that has started this program
// (docs/programs.md). One socket, any number of jobs at once.
//
// Always holds: the handler of a job in #running runs; each job gets one answer, and no line after
// the answer.
const { Socket } = require('node:net')
const { ofLine } = require('./job')
const { lineOf } = require('./json')
const { attempt, answerOf } = require('./outcome')

const PROTOCOL = 1

class Program {
  #socket
  #tasks
  #running = new Map()
  #rest = ''
  #out = ''
  #isEnding = false
  #ended

  constructor(fd, tasks) {
    this.#socket = new Socket({ fd, readable: true, writable: true, allowHalfOpen: true })
    this.#tasks = tasks
  }

  /** Speaks first, then runs jobs until the worker sends no more; resolves when all have ended. */
  serve({ takes, name }) {
    const tasks = {}
    for (const task of this.#tasks.values()) tasks[task.identifier] = { takes: task.takes }
    this.#say(`${JSON.stringify({ hello: { protocol: PROTOCOL, takes, tasks, name } })}\n`)
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
    if (!('cancel' in message)) return this.#run(ofLine(this, message, line), message.task)
    const job = this.#running.get(message.cancel)
    // The claim is over because the handler's own transaction has completed the job, and the
    // handler may go on.
    if (message.reason === 'lost' && job?.isCompleted) {
      this.#answer(job, answerOf(job, { done: true }))
    } else job?.cancel(message.reason, message.grace_ms)
  }

  async #run(job, identifier) {
    this.#running.set(job.key, job)
    const answer = await attempt(this.#tasks.get(identifier), job, (end) => answerOf(job, end))
    this.#running.delete(job.key)
    this.#answer(job, answer)
    this.#endIfIdle()
  }

  #answer(job, line) {
    if (job.isOver) return
    job.isOver = true
    if (this.#out === '') setImmediate(() => this.#flush())
    this.#out += line
  }

  /** Writes what a job says of itself. */
  tell(job, members) {
    this.#say(lineOf(job, members, 'the checkpoint'))
  }

  // At once: the handler may keep the loop busy next.
  #say(line) {
    this.#out += line
    this.#flush()
  }

  #flush() {
    if (this.#out !== '') this.#socket.write(this.#out)
    this.#out = ''
  }

  #endIfIdle() {
    if (!this.#isEnding || this.#running.size > 0) return
    this.#flush()
    this.#socket.end(() => this.#ended())
  }
}

module.exports = { Program }
