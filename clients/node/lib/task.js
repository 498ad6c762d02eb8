'use strict'
// A task: a name, the handler of its jobs, and what the handler's payloads look like.
const { calls } = require('./calls')
const { checkWhole } = require('./parameters')

// Marks how an attempt ends: {snooze}, or of an error {retry, retryIn, payload}. A symbol of all
// copies of the library, so that a job may end by the words of another copy.
const END = Symbol.for('pg-pulse.end')

const MAX_SECONDS = 1_000_000_000
const MAX_TAKES = 10_000

/** A number of seconds, as the worker takes it. */
function secondsOf(value, what) {
  if (typeof value === 'number' && value >= 0 && value <= MAX_SECONDS) return value
  throw new RangeError(`${what} is ${value}, and no number of seconds from 0 to ${MAX_SECONDS}`)
}

/** A number of jobs, as the worker takes it. */
function jobsAtOnce(takes) {
  if (Number.isInteger(takes) && takes >= 1 && takes <= MAX_TAKES) return takes
  throw new RangeError(`takes is ${takes}, and no number of jobs from 1 to 10,000`)
}

/** Fails the attempt: with retry false for good, with retryIn not before so many seconds, with
 * payload for the rest of the work. */
class Failure extends Error {
  name = 'Failure'

  constructor(message, { retry, retryIn, payload, cause } = {}) {
    super(message, { cause })
    if (retryIn !== undefined) secondsOf(retryIn, 'retryIn')
    this[END] = { retry, retryIn, payload }
  }
}

/** A payload that the schema of the task refuses: each attempt would end alike. */
class PayloadRefused extends Failure {
  name = 'PayloadRefused'

  constructor(identifier, issues) {
    const told = issues.map(({ path, message }) => `${pathOf(path)}: ${message}`)
    super(`the payload of ${identifier} is refused: ${told.join('; ')}`, { retry: false })
    this.issues = issues
  }
}

function pathOf(path) {
  const keys = Array.from(path ?? [], (key) => String(key?.key ?? key))
  return keys.length ? keys.join('.') : 'payload'
}

async function validated({ identifier, schema }, payload) {
  const { value, issues } = await schema['~standard'].validate(payload)
  if (issues) throw new PayloadRefused(identifier, issues)
  return value
}

/** Runs the handler of a task for a job. */
async function run(task, job) {
  if (task.schema) job.payload = await validated(task, job.payload)
  return task.handler(job.payload, job)
}

/** Defines a task. `schema`: any Standard Schema; `takes`: so many jobs at once in one program;
 * `unique`: {for, by, states} of adds without a `unique` of their own. */
function task(identifier, handler, { schema, takes, unique } = {}) {
  if (typeof identifier !== 'string' || identifier === '') {
    throw new TypeError('the first argument of task() is the name of the task')
  }
  checkWhole(identifier, 'the name of the task')
  if (typeof handler !== 'function') {
    throw new TypeError(`task ${identifier} has no handler function`)
  }
  if (schema && typeof schema['~standard']?.validate !== 'function') {
    throw new TypeError(`the schema of task ${identifier} is no Standard Schema`)
  }
  if (takes !== undefined) jobsAtOnce(takes)
  const defined = { identifier, handler, schema, takes, unique }
  /** Adds a job of this task in the caller's transaction. */
  defined.add = async (db, payload, options) => {
    if (schema) await validated(defined, payload)
    return calls.addJob(db, identifier, payload, { unique, ...options })
  }
  return defined
}

module.exports = { task, run, jobsAtOnce, secondsOf, Failure, PayloadRefused, END }
