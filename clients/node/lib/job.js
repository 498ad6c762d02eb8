'use strict'
// The job that a handler gets. A port carries what the job says of itself, as members of a line of
// the worker protocol: to the lines of a program, the calls of a worker, or those of a test.
const { query } = require('./calls')
const { current } = require('./console')
const { encode, frozen, memberText, whole } = require('./json')
const { END, secondsOf } = require('./task')

const members = ['attempt', 'crashes', 'database', 'flags', 'identifier', 'job_key', 'last_error',
  'max_attempts', 'priority', 'queue_name', 'recovered', 'token', 'traceparent',
  'worker_id', 'worker_name']
const times = ['created_at', 'run_at', 'scheduled_for']

const MAX_MESSAGE = 1024
// As the worker bounds a text.
const MAX_LOG = 4000

// A text as the server stores texts.
const shown = (text) =>
  (text == null ? undefined : whole(String(text).slice(0, MAX_MESSAGE)).replaceAll('\0', ''))

/** The reason of an AbortSignal: the worker asks a handler to end. */
class JobCancelled extends Error {
  name = 'AbortError'

  constructor(reason, graceMs) {
    super(`the job is to end: ${reason}`)
    Object.assign(this, { reason, graceMs })
  }
}

class Job {
  #port
  #document
  #spelled
  #stop

  /** `spelled` returns the payload or the checkpoint of an earlier attempt as it was spelled. */
  constructor(port, message, spelled) {
    this.#port = port
    this.#document = message.job
    this.#spelled = spelled
    // Names the job among those of the program, as the worker has written it.
    this.key = message.id
    this.id = String(message.job.id)
    this.payload = message.payload
    this.isOver = false
    this.isCompleted = false
  }

  /** One member of the job's document, as the worker names it. */
  get(member) {
    return this.#document[member] ?? null
  }

  /** How the jobs that this one has waited for have ended; ids are texts, as everywhere. */
  get parents() {
    return this.get('parents')?.map((each) => ({ ...each, id: String(each.id) })) ?? null
  }

  /** The payload as the producer has spelled it, with every digit. */
  get payloadText() {
    return this.#spelled('payload')
  }

  /** The checkpoint of an earlier attempt; null without one. */
  get lastCheckpoint() {
    return this.get('checkpoint')
  }

  get lastCheckpointText() {
    return this.#spelled('checkpoint')
  }

  /** Aborted when the job is to end: cancelled, past a limit, or shutdown. */
  get signal() {
    this.#stop ??= new AbortController()
    return this.#stop.signal
  }

  cancel(reason, graceMs) {
    this.signal // a handler may ask for it later
    // What the handler does then is of the job.
    current.run(this, () => this.#stop.abort(new JobCancelled(reason, graceMs)))
  }

  /** Reports progress: a fraction from 0 to 1, and what is being done. */
  progress(fraction, { message, stage } = {}) {
    const isFraction = typeof fraction === 'number' && fraction >= 0 && fraction <= 1
    if (fraction != null && !isFraction) {
      throw new RangeError(`progress is a fraction from 0 to 1, and not ${fraction}`)
    }
    this.#tell({ progress: fraction ?? undefined, message: shown(message), stage: shown(stage) })
  }

  /** Stores a value that the next attempt gets as lastCheckpoint. */
  checkpoint(value) {
    this.#tell({ checkpoint: frozen(value, 'the checkpoint') })
  }

  /** Writes a text, as one line, to the log of the worker with this job. */
  log(text, level = 'info') {
    this.#tell({ log: whole(String(text).slice(0, MAX_LOG)), level })
  }

  // A job whose end is on its way says no more.
  #tell(members) {
    if (!this.isOver) this.#port.tell(this, members)
  }

  /** The end of an attempt that is given back: return or throw it. */
  snooze(seconds, { checkpoint } = {}) {
    return { [END]: { snooze: secondsOf(seconds, 'the delay'), checkpoint } }
  }

  /** Ties the client's transaction to this claim: COMMIT fails if the claim is lost by then. */
  async fence(client) {
    const text = 'SELECT FROM pulse.fence($1::text::bigint, $2::text::bigint)'
    await query(client, text, [this.id, this.token])
  }

  /** Completes the job in the client's transaction: the end commits or rolls back with its rows. */
  async complete(client, result) {
    const text =
      'SELECT FROM pulse.complete($1::text::bigint, $2::text::bigint, $3::text::json)'
    const document = result === undefined ? null : encode(result, 'the result')
    await query(client, text, [this.id, this.token, document])
    this.isCompleted = true
  }
}

/** The job of a line of the worker. */
function ofLine(port, message, line) {
  return new Job(port, message, (member) =>
    memberText(member === 'payload' ? line : memberText(line, 'job'), member))
}

/** The job of a row of a claim, which has id, token, and the whole claimed_job as text. */
function claimed(port, { id, token, text }) {
  const job = JSON.parse(text)
  Object.assign(job, { id, token, attempt: job.attempts })
  return new Job(port, { id, payload: job.payload, job }, (member) => memberText(text, member))
}

// A handler may take a method out of the job: async (payload, { progress }) => …
for (const name of ['progress', 'checkpoint', 'log', 'snooze', 'fence', 'complete']) {
  const method = Job.prototype[name]
  Object.defineProperty(Job.prototype, name, { get() { return method.bind(this) } })
}

const camelCase = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase())
for (const member of members) {
  Object.defineProperty(Job.prototype, camelCase(member), { get() { return this.get(member) } })
}
for (const member of times) {
  Object.defineProperty(Job.prototype, camelCase(member), {
    get() { return this.get(member) === null ? null : new Date(this.get(member)) },
  })
}

module.exports = { claimed, Job, JobCancelled, ofLine }
