'use strict'
// A folder of task files in the shape of Graphile Worker: each exports (payload, helpers) => …
const { readdir } = require('node:fs/promises')
const { join, resolve } = require('node:path')
const { pathToFileURL } = require('node:url')
const { calls } = require('./calls')
const { driver } = require('./driver')
const { errorText } = require('./outcome')
const { task, Failure } = require('./task')

const SCRIPT = /\.[cm]?js$/

/** Paths of the scripts of a folder and the folders below. */
async function scriptsOf(folder, beneath = '') {
  const entries = await readdir(join(folder, beneath), { withFileTypes: true })
  const found = await Promise.all(entries.map(async (entry) => {
    const path = beneath + entry.name
    if (!entry.isDirectory()) return SCRIPT.test(path) ? [path] : []
    return entry.name === 'node_modules' ? [] : scriptsOf(folder, `${path}/`)
  }))
  return found.flat().sort()
}

async function functionOf(file) {
  const module = await import(pathToFileURL(file))
  // A module of ESM that was compiled to CommonJS has its default twice.
  const handler = module.default?.default ?? module.default
  if (typeof handler !== 'function') throw new TypeError(`${file} exports no function`)
  return handler
}

// A job as Graphile Worker describes it.
function described(job, payload) {
  return {
    id: job.id, payload, task_identifier: job.identifier, queue_name: job.queueName,
    priority: job.priority, run_at: job.runAt, created_at: job.createdAt, attempts: job.attempt,
    max_attempts: job.maxAttempts, last_error: job.lastError, key: job.jobKey,
    flags: job.flags?.length ? Object.fromEntries(job.flags.map((flag) => [flag, true])) : null,
  }
}

function loggerOf(job) {
  const logger = { scope: () => logger }
  for (const level of ['error', 'warn', 'info', 'debug']) {
    logger[level] = (message) => job.log(message, level === 'warn' ? 'warning' : level)
  }
  return logger
}

function helpersOf(job, payload, pool) {
  const abortPromise = new Promise((_, reject) => {
    job.signal.addEventListener('abort', () => reject(job.signal.reason))
  })
  abortPromise.catch(() => {}) // a task need not await the promise
  const withPgClient = async (callback) => {
    const client = await pool().connect()
    try {
      const result = await callback(client)
      client.release()
      return result
    } catch (error) {
      // With its session a transaction ends that the callback has left to the next job.
      client.release(true)
      throw error
    }
  }
  return {
    job: described(job, payload), logger: loggerOf(job), withPgClient, abortPromise,
    abortSignal: job.signal, getQueueName: () => job.queueName,
    query: (text, values) => pool().query(text, values),
    addJob: (name, payload, spec) => calls.addJob(pool(), name, payload ?? {}, spec),
    addJobs: (specs, jobKeyPreserveRunAt) =>
      calls.addJobs(pool(), specs, { jobKeyPreserveRunAt }),
  }
}

// What a task makes of a list may be a list of promises: of a list that fails in part, the failed
// elements are tried again.
async function outcomeOf(payload, result) {
  if (!Array.isArray(payload) || !Array.isArray(result)) return
  const outcomes = await Promise.allSettled(result)
  const failed = outcomes.filter(({ status }) => status === 'rejected')
  if (!failed.length) return
  throw new Failure(failed.map(({ reason }) => errorText(reason)).join('\n'), {
    payload: payload.filter((_, i) => outcomes[i].status === 'rejected') })
}

/** A session that ends with the server is no error of the program, idle or not: a query fails that
 * the session has, and the pool opens another. */
function poolOf({ Pool }) {
  return new Pool().on('error', () => {})
    .on('connect', (client) => client.on('error', () => {}))
}

/** The tasks of a folder, and `end`, which closes the pool of their helpers. */
async function readTasks(folder) {
  const scripts = await scriptsOf(folder)
  if (!scripts.length) throw new Error(`${folder} has no file NAME.js, NAME.mjs or NAME.cjs`)
  // One for all helpers, made when a task first asks for the database.
  let made
  const pool = () => (made ??= poolOf(driver()))
  const tasks = await Promise.all(scripts.map(async (script) => {
    const handler = await functionOf(resolve(folder, script))
    return task(script.replace(SCRIPT, ''), async (payload, job) =>
      outcomeOf(payload, await handler(payload, helpersOf(job, payload, pool))))
  }))
  return { tasks, end: async () => made?.end() }
}

module.exports = { readTasks }
