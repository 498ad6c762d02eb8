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
  const found = await Promise.all(entries.map((entry) => {
    const path = beneath ? `${beneath}/${entry.name}` : entry.name
    if (entry.isDirectory() && entry.name !== 'node_modules') return scriptsOf(folder, path)
    return SCRIPT.test(entry.name) ? [path] : []
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

// One pool for all helpers, made when a task first asks for the database. `pg` is a library of the
// application.
function lazyPool() {
  let pool
  return {
    get() {
      pool ??= new (driver().Pool)()
      return pool
    },
    end: async () => pool?.end(),
  }
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
    const client = await pool.get().connect()
    try {
      return await callback(client)
    } finally {
      client.release()
    }
  }
  return {
    job: described(job, payload), logger: loggerOf(job), withPgClient, abortPromise,
    abortSignal: job.signal, getQueueName: () => job.queueName,
    query: (text, values) => pool.get().query(text, values),
    addJob: (name, payload, spec) => calls.addJob(pool.get(), name, payload ?? {}, spec),
    addJobs: (specs, jobKeyPreserveRunAt) =>
      calls.addJobs(pool.get(), specs, { jobKeyPreserveRunAt }),
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

/** The tasks of a folder, and `end`, which closes the pool of their helpers. */
async function readTasks(folder) {
  const pool = lazyPool()
  const scripts = await scriptsOf(folder)
  if (!scripts.length) throw new Error(`${folder} has no file NAME.js, NAME.mjs or NAME.cjs`)
  const tasks = await Promise.all(scripts.map(async (script) => {
    const handler = await functionOf(resolve(folder, script))
    return task(script.replace(SCRIPT, ''), async (payload, job) =>
      outcomeOf(payload, await handler(payload, helpersOf(job, payload, pool))))
  }))
  return { tasks, end: pool.end }
}

module.exports = { readTasks }
