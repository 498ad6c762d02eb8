'use strict'
// The direct mode: a worker within this process, for hosts without pulse-worker. The class keeps
// the rules of docs/worker-protocol.md.
//
// Always holds: #jobs has each job that this worker has claimed and not reported, by id; a beat
// names exactly these jobs; each end goes to the server with the token of the claim until an
// answer comes. #handlers has each job whose handler has not ended; a handler that outlives the
// end of its job keeps its place. The session #claims waits and claims; the session #beats is
// attached, and asks all else.
const { setTimeout: pause } = require('node:timers/promises')
const { checkVersion } = require('./calls')
const { plain } = require('./console')
const { EndQueue } = require('./end_queue')
const { claimed } = require('./job')
const { lineOf } = require('./json')
const { attempt } = require('./outcome')
const { arrayLiteral } = require('./parameters')
const { ReportQueue } = require('./report_queue')
const { isCut, Session } = require('./session')

// What a claim or a beat waits for an answer at most.
const ANSWER_MS = 30_000
const WAIT = '20 s'
// Beyond the wait: a server that is gone without a word answers never.
const WAIT_MS = 20_000 + ANSWER_MS
// Until a task without a free place is asked for again, and after a refusal.
const POLL_WAIT = '500 ms'
const POLL_MS = 500
const MAX_TIMER_MS = 2 ** 31 - 1
const CANCEL_MS = 50
// npm, terminals and supervisors may send a signal twice.
const AGAIN_MS = 5000

const CLAIM = `SELECT c.id::text, c.token::text, row_to_json(c)::text AS text,
    (extract(epoch FROM c.timeout) * 1000)::float8 AS timeout,
    (extract(epoch FROM c.stall_timeout) * 1000)::float8 AS stall FROM pulse.`

class Direct {
  #tasks
  #options
  #claims
  #beats
  #ends
  #reports
  #me
  #jobs = new Map()
  #handlers = new Set()
  #isClaiming = true
  #isStopping = false
  #isOver = false
  #signalledAt
  #complaint
  // The sessions that are away, and the reasons that were told since all were there.
  #away = new Set()
  #reasons = new Set()
  #isChecked = false
  #wake = () => {}

  constructor(connect, tasks, options) {
    this.#tasks = tasks
    this.#options = options
    const notice = ({ code }) => {
      if (code === 'PU100') this.#sweep().catch((error) => this.#complain(error))
    }
    const told = { notice, complain: (error) => this.#complain(error),
      lost: (...away) => this.#lost(...away), back: (session) => this.#back(session) }
    this.#claims = new Session(connect, told)
    this.#beats = new Session(connect, { ...told, prepare: (client) => this.#attach(client) })
    const ask = (...call) => this.#ask(...call)
    this.#ends = new EndQueue(ask, (job) => this.#forget(job))
    this.#reports = new ReportQueue(ask, (job, error) => {
      if (error.code === 'PU001') this.#revoke(job)
      else this.#complain(error)
    })
  }

  /** Runs jobs until stop(), or until an operator asks the worker to leave. False where handlers
   * have not ended in time. */
  async serve() {
    try {
      await this.#start()
      await this.#claimJobs()
      this.#isClaiming = false
      while (this.#jobs.size > 0 && !this.#isOver) await this.#change(POLL_MS)
      this.#isOver = true
      await this.#ask('SELECT FROM pulse.deregister_worker($1::text::bigint)', [this.#me.id])
        .catch(() => {})
    } finally {
      // An open session would keep the process.
      await Promise.all([this.#claims.end(), this.#beats.end()])
    }
    return this.#handlers.size === 0
  }

  async #start() {
    await this.#beats.check()
    this.#isChecked = true
    await checkVersion(this.#beats)
    await this.#register()
    this.#repeat(() => this.#beat(), () => this.#me.beatMs)
    this.#repeat(() => this.#sweep(), () => this.#me.sweepMs)
  }

  /** Claims no more. With `finish` jobs may take their time; else the signal of each is aborted,
   * and after the grace the worker leaves. */
  async stop(finish = false) {
    if (!this.#isStopping) this.#endWait()
    this.#isStopping = true
    this.#wake()
    if (finish) return
    for (const job of this.#jobs.values()) this.#tellToEnd(job, 'silence', 'shutdown')
    await pause(this.#options.grace, undefined, { ref: false })
    this.giveUp()
  }

  /** No answer that has not come by now is waited for. */
  giveUp() {
    this.#isOver = true
    this.#claims.end()
    this.#beats.askOnce()
    this.#wake()
  }

  /** A signal has come that ends processes. The first stops the worker; a further one that comes
   * later than five seconds ends the handlers. */
  signalled(now) {
    if (this.#signalledAt === undefined) {
      this.#signalledAt = now
      this.stop()
    } else if (now - this.#signalledAt > AGAIN_MS) this.giveUp()
  }

  // Again and again, because a wait may be on its way to the server.
  async #endWait() {
    while (this.#isClaiming) {
      const { pid } = this.#claims
      if (pid) await this.#ask('SELECT pg_cancel_backend($1)', [pid]).catch(() => {})
      await pause(CANCEL_MS)
    }
  }

  #ask(text, values) {
    return this.#beats.ask(text, values, ANSWER_MS)
  }

  /** Until something has changed for the loop that claims, or so many ms. */
  #change(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => { clearTimeout(timer); resolve() }
    })
  }

  async #repeat(act, interval) {
    while (!this.#isOver) {
      await pause(interval(), undefined, { ref: false })
      if (!this.#isOver) await act().catch((error) => this.#complain(error))
    }
  }

  // Once, however often the server refuses in the same words.
  #complain({ message }) {
    if (message !== this.#complaint) plain.error(`pg-pulse: ${message}`)
    this.#complaint = message
  }

  /** Says why the server is away: each reason once, however many sessions and tries. */
  #lost(session, reason) {
    // The caller of work() hears why a start fails.
    if (!this.#isChecked || this.#isOver) return
    this.#away.add(session)
    if (!this.#reasons.has(reason)) plain.error(`pg-pulse: reconnecting: ${reason}`)
    this.#reasons.add(reason)
  }

  #back(session) {
    if (!this.#away.delete(session) || this.#away.size > 0 || this.#isOver) return
    this.#reasons.clear()
    plain.error('pg-pulse: connected again')
  }

  // --- the worker ---

  async #register() {
    const { name, takes, grace } = this.#options
    const info = JSON.stringify({ pid: process.pid, slots: takes, kill_grace_ms: grace })
    const [row] = await this.#ask(`SELECT id::text,
        (extract(epoch FROM heartbeat_interval) * 1000)::float8 AS "beatMs", (extract(epoch FROM
        current_setting('pulse.sweep_interval')::interval) * 1000)::float8 AS "sweepMs"
      FROM pulse.register_worker($1::text, $2::text::text[], $3::text::json)`,
    [name, arrayLiteral(this.#tasks.keys()), info])
    // A database that leaves sweeps to others has a negative interval.
    this.#me = { ...row, sweepMs: row.sweepMs > 0 ? row.sweepMs : MAX_TIMER_MS }
    await this.#attach({ query: (...call) => this.#ask(...call) })
  }

  /** In each session that beats. A worker that is lost by then finds out by its next beat. */
  async #attach(session) {
    if (!this.#me || this.#isOver) return
    await session.query('SELECT FROM pulse.attach_worker($1::text::bigint)', [this.#me.id])
      .catch((error) => { if (error.code !== 'PU002') throw error })
  }

  async #beat() {
    const me = this.#me
    const [{ status, revoked, cancelled }] = await this.#ask(`SELECT status, revoked::text[],
        cancelled::text[] FROM pulse.heartbeat($1::text::bigint, $2::text::bigint[])`,
    [me.id, arrayLiteral(this.#jobs.keys())])
    if (status === 'lost') return this.#renew(me)
    for (const id of revoked) this.#revoke(this.#jobs.get(id))
    for (const id of cancelled) this.#jobs.get(id)?.cancel('cancelled', this.#options.grace)
    if (status !== 'alive') this.stop(status !== 'stopping')
  }

  /** All claims of this worker are over: a new worker takes part. */
  async #renew(me) {
    if (this.#me !== me) return
    for (const job of this.#jobs.values()) this.#revoke(job)
    await this.#register()
    this.#wake()
  }

  async #sweep() {
    for (let found = 1; found > 0 && !this.#isOver; ) {
      [{ found }] = await this.#ask(`SELECT workers_lost + jobs_requeued + jobs_failed +
        jobs_quarantined + jobs_timed_out + jobs_stalled AS found FROM pulse.sweep()`)
    }
  }

  // --- jobs ---

  async #claimJobs() {
    while (!this.#isStopping) {
      const me = this.#me
      const open = [...this.#tasks.values()].filter((task) => this.#placesOf(task) > 0)
      if (open.length === 0) {
        await this.#change(ANSWER_MS)
        continue
      }
      // So few that no task gets more than it takes, whatever comes. A wait is for the tasks of the
      // last claim, so one claim names all.
      const most = Math.min(...open.map((task) => this.#placesOf(task)))
      const rows = await this.#claimed(me, most, open).catch((error) => this.#refused(error, me))
      for (const row of rows) this.#run(row)
      if (rows.length > 0 || this.#isStopping) continue
      const longest = open.length < this.#tasks.size ? POLL_WAIT : WAIT
      await this.#claims.query('CALL pulse.wait_for_job($1::text::bigint, $2::text::interval)',
        [me.id, longest], WAIT_MS).catch(() => {})
      await this.#beat().catch(() => {})
    }
  }

  /** Of the whole worker, or of the task where that is less. */
  #placesOf({ identifier, takes }) {
    const free = this.#options.takes - Math.max(this.#jobs.size, this.#handlers.size)
    if (takes === undefined) return free
    const running = [...this.#handlers].filter((job) => job.identifier === identifier)
    return Math.min(free, takes - running.length)
  }

  async #claimed(me, count, tasks) {
    try {
      return await this.#claims.query(`${CLAIM}claim($1::text::bigint, $2::int, $3::text::text[],
        start_jobs => $2::int) AS c`,
      [me.id, count, arrayLiteral(tasks.map((task) => task.identifier))], ANSWER_MS)
    } catch (error) {
      if (!isCut(error)) throw error
      // The answer may be lost, and the jobs claimed. A job that ends on the other session
      // meanwhile may still be in the answer.
      const known = new Map(this.#jobs)
      const text = `${CLAIM}held($1::text::bigint) AS c`
      const held = await this.#claims.ask(text, [me.id], ANSWER_MS)
      return held.filter((row) => known.get(row.id)?.token !== row.token)
    }
  }

  async #refused(error, me) {
    if (error.code === 'PU002') await this.#renew(me).catch(() => {})
    else if (error.code !== '57014' && !error.isGone) this.#complain(error)
    await this.#change(POLL_MS)
    return []
  }

  async #run(row) {
    const job = claimed(this, row)
    // Requeued, and claimed anew before a beat has told of the end of the old claim.
    this.#revoke(this.#jobs.get(job.id))
    this.#jobs.set(job.id, job)
    this.#handlers.add(job)
    job.limit = this.#limit(job, row.timeout, 'timeout')
    job.stallMs = row.stall
    job.stall = this.#limit(job, row.stall, 'stall')
    this.#ended(job, await attempt(this.#tasks.get(job.identifier), job))
    this.#handlers.delete(job)
    this.#wake()
  }

  #limit(job, ms, reason) {
    if (ms === null) return undefined
    return setTimeout(() => this.#tellToEnd(job, reason, reason), Math.min(ms, MAX_TIMER_MS))
      .unref()
  }

  // An end from now on is the end that `late` says. A handler that does not end is left alone.
  #tellToEnd(job, late, reason) {
    if (job.isOver || job.late) return
    job.late = late
    job.cancel(reason, this.#options.grace)
    setTimeout(() => this.#ended(job, { error: 'the handler has not ended in time' }),
      this.#options.grace).unref()
  }

  // A handler that ends behind its grace, or that has lost its job, tells nothing.
  #ended(job, end) {
    if (job.isOver) return
    job.isOver = true
    clearTimeout(job.limit)
    clearTimeout(job.stall)
    const isLate = job.late && !end.done
    const told = isLate ? { late: job.late, error: end.error ?? 'it ended too late' } : end
    this.#reports.finish(job).then(() => this.#ends.add(job, told))
  }

  #revoke(job) {
    if (!job) return
    job.cancel('lost', 0)
    job.isOver = true
    this.#forget(job)
  }

  #forget(job) {
    if (this.#jobs.get(job.id) === job) this.#jobs.delete(job.id)
    this.#wake()
  }

  /** Carries what a job says of itself. */
  tell(job, { progress, message, stage, checkpoint, log, level }) {
    lineOf(job, { checkpoint }, 'the checkpoint')
    if (log !== undefined) {
      const write = plain[level === 'warning' ? 'warn' : level] ?? plain.log
      const named = (line) => `${job.identifier} ${job.id}: ${line}`
      return write(log.split('\n').map(named).join('\n'))
    }
    clearTimeout(job.stall)
    job.stall = this.#limit(job, job.stallMs, 'stall')
    this.#reports.add(job, { progress, message, stage, checkpoint })
  }
}

module.exports = { Direct }
