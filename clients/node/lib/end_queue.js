'use strict'
// The ends of jobs in the direct mode, reported together: a call for all ends that have come
// meanwhile.
const { setTimeout: pause } = require('node:timers/promises')
const { arrayLiteral, interval } = require('./calls')
const { encode } = require('./json')

// A job that another transaction holds is asked for again.
const BUSY_MS = 50
const MAX_TOGETHER = 500

const CLAIMS = '$1::text::bigint[], $2::text::bigint[]'
const text = (document) => (document === undefined ? null : encode(document))
const seconds = (number) => (number === undefined ? null : interval(number))
const stored = (error) => error.replaceAll('\0', '')

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
    ({ error, late }) => [stored(error), late]],
  error: [`SELECT outcome FROM pulse.fail_many(${CLAIMS}, $3::text::text[], $4::text::bool[],
    $5::text::interval[], $6::text::json[])`,
  ({ error, retry, retry_in, payload }) =>
    [stored(error), retry ?? true, seconds(retry_in), text(payload)]],
  result: [`SELECT outcome FROM pulse.complete_many(${CLAIMS}, $3::text::json[])`,
    ({ result }) => [text(result) === 'null' ? null : text(result)]],
}

const kinds = Object.keys(reports)
const kindOf = (end) => kinds.find((kind) => end[kind] !== undefined)

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
    this.#waiting.push({ job, end })
    if (this.#isSending) return
    this.#isSending = true
    setImmediate(() => this.#send())
  }

  async #send() {
    while (this.#waiting.length > 0) {
      const ends = this.#waiting.splice(0, MAX_TOGETHER)
      for (const kind of kinds) {
        await this.#report(kind, ends.filter(({ end }) => kindOf(end) === kind))
      }
    }
    this.#isSending = false
  }

  async #report(kind, ends) {
    if (ends.length === 0) return
    const [call, valuesOf] = reports[kind]
    const rows = ends.map(({ job, end }) => [job.id, job.token, ...valuesOf(end)])
    const columns = rows[0].map((_, i) => arrayLiteral(rows.map((row) => row[i])))
    try {
      const answers = await this.#ask(call, columns)
      ends.forEach(({ job, end }, i) => this.#reported(job, end, answers[i].outcome))
      if (answers.some(({ outcome }) => outcome === 'busy')) await pause(BUSY_MS)
    } catch (error) {
      if (ends.length === 1) return this.#refused(ends[0], error)
      for (const end of ends) await this.#report(kind, [end])
    }
  }

  #reported(job, end, outcome) {
    if (outcome === 'busy') this.#waiting.push({ job, end })
    else if (outcome === 'held') this.add(job, { error: 'its transaction did not commit' })
    else this.#forget(job)
  }

  /** An end that the server refuses is a failure in its turn, once. A passing error comes here only
   * when the worker waits for no answer any more. */
  #refused({ job, end }, error) {
    if (error.code === 'PU001' || error.isPassing || end.isRefusal) return this.#forget(job)
    this.add(job, { error: `the end was refused: ${error.message}`, isRefusal: true })
  }
}

module.exports = { EndQueue }
