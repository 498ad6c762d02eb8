'use strict'
// The ends of jobs in the direct mode, reported together: a call for all ends that have come
// meanwhile.
const { setTimeout: pause } = require('node:timers/promises')
const { arrayLiteral } = require('./calls')

// A job that another transaction holds is asked for again.
const BUSY_MS = 50
const MAX_TOGETHER = 500

const parse = (text) => (text === undefined ? undefined : JSON.parse(text).replaceAll('\0', ''))
const seconds = (text) => (text === undefined ? null : `${text} seconds`)

// For each kind of end the call that reports it, the types of the arrays behind ids and tokens,
// and the values of an end.
const calls = {
  complete: ['complete_many', ['json'], ({ result }) => [result === 'null' ? null : result]],
  fail: ['fail_many', ['text', 'bool', 'interval', 'json'], ({ error, retry, retry_in, payload }) =>
    [parse(error), retry ?? 'true', seconds(retry_in), payload ?? null]],
  late: ['fail_late', ['text', 'text'], ({ error, late }) => [parse(error), late]],
}

function kindOf({ done, snooze, late, error }) {
  if (done) return 'done'
  if (snooze !== undefined) return 'snooze'
  return late ? 'late' : error === undefined ? 'complete' : 'fail'
}

class EndQueue {
  #session
  #forget
  #waiting = []
  #isSending = false

  constructor(session, forget) {
    this.#session = session
    this.#forget = forget
  }

  add(job, members) {
    this.#waiting.push({ job, members })
    if (this.#isSending) return
    this.#isSending = true
    setImmediate(() => this.#send())
  }

  async #send() {
    while (this.#waiting.length > 0) {
      const ends = this.#waiting.splice(0, MAX_TOGETHER)
      for (const [kind, some] of grouped(ends)) await this.#report(kind, some)
    }
    this.#isSending = false
  }

  async #report(kind, ends) {
    try {
      if (kind === 'snooze') for (const end of ends) await this.#snooze(end)
      else if (kind === 'done') for (const end of ends) await this.#check(end)
      else await this.#together(kind, ends)
    } catch (error) {
      if (ends.length > 1) for (const end of ends) await this.#report(kind, [end])
      else this.#refused(ends[0], error)
    }
  }

  /** An end that the server refuses is a failure in its turn, once. */
  #refused({ job, members }, error) {
    if (error.code === 'PU001' || members.isRefusal) return this.#forget(job)
    const text = `the end was refused: ${error.message}`
    this.add(job, { error: JSON.stringify(text), isRefusal: true })
  }

  async #together(kind, ends) {
    const [call, types, valuesOf] = calls[kind]
    const rows = ends.map(({ members }) => valuesOf(members))
    const arrays = [ends.map(({ job }) => job.id), ends.map(({ job }) => job.token),
      ...types.map((_, i) => rows.map((row) => row[i]))]
    const casts = ['bigint', 'bigint', ...types].map((type, i) => `$${i + 1}::text::${type}[]`)
    const answers = await this.#session.ask(
      `SELECT id::text, outcome FROM pulse.${call}(${casts.join(', ')})`, arrays.map(arrayLiteral))
    const busy = ends.filter((_, i) => answers[i].outcome === 'busy')
    for (const end of ends) if (!busy.includes(end)) this.#forget(end.job)
    if (busy.length === 0) return
    await pause(BUSY_MS)
    this.#waiting.push(...busy)
  }

  async #snooze({ job, members: { snooze, checkpoint } }) {
    await this.#session.ask(`SELECT FROM pulse.snooze($1::text::bigint, $2::text::bigint,
      $3::text::interval, $4::json)`, [job.id, job.token, seconds(snooze), checkpoint ?? null])
    this.#forget(job)
  }

  /** The handler says that its transaction has ended the job. */
  async #check({ job }) {
    // Raises PU001, which is a good end, unless the claim still stands.
    await this.#session.ask('SELECT FROM pulse.held_job($1::text::bigint, $2::text::bigint)',
      [job.id, job.token])
    this.add(job, { error: '"its transaction did not commit"' })
  }
}

function grouped(ends) {
  const byKind = new Map()
  for (const end of ends) {
    const kind = kindOf(end.members)
    byKind.set(kind, [...(byKind.get(kind) ?? []), end])
  }
  return byKind
}

module.exports = { EndQueue }
