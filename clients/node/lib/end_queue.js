'use strict'
// The ends of jobs in the direct mode, reported together: a call for all ends that have come
// meanwhile.
const { setTimeout: pause } = require('node:timers/promises')
const { encode } = require('./json')
const { arrayLiteral, interval } = require('./parameters')

// A job that another transaction holds is asked for again.
const BUSY_MS = 50
const MAX_TOGETHER = 500
// Of the arguments of one call, in characters; a single end may have more.
const MAX_LENGTH = 4 << 20

const CLAIMS = '$1::text::bigint[], $2::text::bigint[]'
const text = (document) => (document === undefined ? null : encode(document))
const seconds = (number) => (number === undefined ? null : interval(number))

// For each kind of end, which has the member of that name, the call that reports several, and the
// arguments of one end behind id and token.
const reports = {
  // The handler says that its transaction has ended the job. PU001 is a good end.
  done: [`SELECT 'held' AS outcome FROM unnest(${CLAIMS}) AS e(i, t), pulse.held_job(i, t)`,
    () => []],
  snooze: [`SELECT NULL AS outcome FROM unnest(${CLAIMS}, $3::text::interval[], $4::text::json[])
    AS e(i, t, s, c), pulse.snooze(i, t, s, c)`,
  ({ snooze, checkpoint }) => [seconds(snooze), text(checkpoint)]],
  late: [`SELECT outcome FROM pulse.fail_late(${CLAIMS}, $3::text::text[], $4::text::text[])`,
    ({ error, late }) => [error, late]],
  error: [`SELECT outcome FROM pulse.fail_many(${CLAIMS}, $3::text::text[], $4::text::bool[],
    $5::text::interval[], $6::text::json[])`,
  ({ error, retry, retry_in, payload }) =>
    [error, retry ?? true, seconds(retry_in), text(payload)]],
  result: [`SELECT outcome FROM pulse.complete_many(${CLAIMS}, $3::text::json[])`,
    ({ result }) => [text(result) === 'null' ? null : text(result)]],
}

const kinds = Object.keys(reports)

class EndQueue {
  #ask
  #forget
  #waiting = []
  #isSending = false

  constructor(ask, forget) {
    this.#ask = ask
    this.#forget = forget
  }

  add(job, end) {
    const kind = kinds.find((each) => end[each] !== undefined)
    this.#waiting.push({ job, kind, isRefusal: end.isRefusal, values: reports[kind][1](end) })
    if (this.#isSending) return
    this.#isSending = true
    setImmediate(() => this.#send())
  }

  async #send() {
    while (this.#waiting.length > 0) {
      const ends = this.#next()
      for (const kind of kinds) await this.#report(kind, ends.filter((end) => end.kind === kind))
    }
    this.#isSending = false
  }

  #next() {
    let length = 0
    const last = this.#waiting.findIndex(({ values }, i) => i === MAX_TOGETHER ||
      ((length += values.join().length) > MAX_LENGTH && i > 0))
    return this.#waiting.splice(0, last < 0 ? MAX_TOGETHER : last)
  }

  async #report(kind, ends) {
    if (ends.length === 0) return
    const rows = ends.map(({ job, values }) => [job.id, job.token, ...values])
    const columns = rows[0].map((_, i) => arrayLiteral(rows.map((row) => row[i])))
    try {
      const answers = await this.#ask(reports[kind][0], columns)
      ends.forEach((end, i) => this.#reported(end, answers[i].outcome))
      if (answers.some(({ outcome }) => outcome === 'busy')) await pause(BUSY_MS)
    } catch (error) {
      if (ends.length === 1) return this.#refused(ends[0], error)
      for (const end of ends) await this.#report(kind, [end])
    }
  }

  #reported(end, outcome) {
    const { job } = end
    if (outcome === 'busy') this.#waiting.push(end)
    else if (outcome === 'held') this.add(job, { error: 'its transaction did not commit' })
    else this.#forget(job)
  }

  /** An end that the server refuses is a failure in its turn, once. A passing error comes here only
   * when the worker waits for no answer any more. */
  #refused({ job, isRefusal }, error) {
    if (error.code === 'PU001' || error.isPassing || isRefusal) return this.#forget(job)
    this.add(job, { error: `the end was refused: ${error.message}`, isRefusal: true })
  }
}

module.exports = { EndQueue }
