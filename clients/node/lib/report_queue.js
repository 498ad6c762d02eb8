'use strict'
// What the jobs of the direct mode say of themselves. At most one report of all is under way but
// those of jobs that end, so that a flood of reports delays neither an end nor a beat; what a job
// says meanwhile goes together, and the newest of each member counts.
const { encode } = require('./json')

const REPORT = `SELECT FROM pulse.progress($1::text::bigint, $2::text::bigint, $3::text, $4::float8,
  $5::text::json, $6::text)`

class ReportQueue {
  #ask
  #refused
  #waiting = new Map()
  #underWay = new Map()
  #isSending = false

  constructor(ask, refused) {
    this.#ask = ask
    this.#refused = refused
  }

  add(job, members) {
    const given = Object.entries(members).filter(([, value]) => value !== undefined)
    this.#waiting.set(job, { ...this.#waiting.get(job), ...Object.fromEntries(given) })
    if (!this.#isSending) this.#send()
  }

  /** Resolves when the server has all that the job has said: a failed attempt leaves its checkpoint
   * to the next. */
  async finish(job) {
    while (this.#underWay.has(job) || this.#waiting.has(job)) {
      await (this.#underWay.get(job) ?? this.#report(job))
    }
  }

  async #send() {
    this.#isSending = true
    for (const job of this.#waiting.keys()) {
      await this.#underWay.get(job)
      if (this.#waiting.has(job)) await this.#report(job)
    }
    this.#isSending = false
  }

  #report(job) {
    const { message, progress, checkpoint, stage } = this.#waiting.get(job)
    this.#waiting.delete(job)
    const report = this.#ask(REPORT, [job.id, job.token, message, progress,
      checkpoint && encode(checkpoint), stage]).catch((error) => this.#refused(job, error))
      .finally(() => this.#underWay.delete(job))
    this.#underWay.set(job, report)
    return report
  }
}

module.exports = { ReportQueue }
