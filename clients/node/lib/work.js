'use strict'
// work(): runs jobs as a program of pulse-worker, or without pulse-worker in the direct mode.
const fs = require('node:fs')
const { plain, route } = require('./console')
const { Direct } = require('./direct')
const { connector } = require('./driver')
const { library } = require('./errors')
const { checkList } = require('./parameters')
const { Program } = require('./program')
const { jobsAtOnce } = require('./task')

const TAKES = 100
const GRACE_MS = 25_000
// A timer of Node has 31 bits, and a longer time would be over at once.
const MAX_GRACE_MS = 2 ** 31 - 1
// Handlers of the direct mode have not ended in time.
const FORCED = 75

function tasksByName(tasks) {
  checkList(tasks, 'tasks')
  const byName = new Map()
  for (const task of tasks) {
    const { identifier, handler } = task ?? {}
    if (typeof handler !== 'function') {
      throw new TypeError('work() takes a list of what task() returns')
    }
    if (byName.has(identifier)) throw new TypeError(`work() has the task ${identifier} twice`)
    byName.set(identifier, task)
  }
  if (byName.size === 0) throw new TypeError('work() has no task to serve')
  return byName
}

// Says in globalThis which copy of the library runs the jobs.
const OWNER = Symbol.for('pg-pulse.program')
// In place of the descriptor, for processes that the application starts.
const TAKEN = 'taken'

/** The descriptor of the socket to the worker; undefined where no worker started the program. */
function takeDescriptor(command) {
  const { PULSE_FD } = process.env
  if (PULSE_FD === undefined) return undefined
  if (PULSE_FD === TAKEN) {
    throw new Error('a pulse-worker runs the jobs in the program that has started this process: ' +
      'a process of its own for them is another --program')
  }
  const fd = Number(PULSE_FD)
  try {
    if (!fs.fstatSync(fd).isSocket()) throw new TypeError('no socket')
  } catch (cause) {
    throw new Error(`descriptor ${fd} is no socket of a pulse-worker: npx and npm hand no ` +
      `descriptors on, so start the program without them: --program '${command}'`, { cause })
  }
  process.env.PULSE_FD = TAKEN
  return fd
}

function checkGrace(grace) {
  if (typeof grace === 'number' && grace >= 0 && grace <= MAX_GRACE_MS) return
  throw new RangeError(`grace is ${grace}, and no number of milliseconds from 0 to ${MAX_GRACE_MS}`)
}

function connectorFor(connection, command) {
  try {
    return connector(connection)
  } catch (cause) {
    throw new Error('a pulse-worker starts this program, and runs its jobs here: pulse-worker ' +
      `--database NAME --program '${command}'. Without pulse-worker the program needs a ` +
      'connection: npm install pg', { cause })
  }
}

async function workDirectly(connect, tasks, options) {
  const direct = new Direct(connect, tasks, options)
  const stop = () => { direct.signalled(performance.now()) }
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, stop)
  try {
    if (await direct.serve()) return
  } finally {
    for (const signal of ['SIGTERM', 'SIGINT']) process.removeListener(signal, stop)
  }
  plain.error('pg-pulse: handlers have not ended in time, and end with the process')
  process.exit(FORCED)
}

/** Runs the jobs of these tasks until the worker is to leave. `takes`: so many jobs at once (100);
 * `name`: for the log. Under `pulse-worker --program` that is all; else the direct mode has
 * `connection`, and `grace` for the handlers at the end, in milliseconds. */
async function work(tasks, { takes = TAKES, grace = GRACE_MS, name, connection,
  command = `node ${process.argv[1] ?? 'app.js'}` } = {}) {
  const byName = tasksByName(tasks)
  jobsAtOnce(takes)
  checkGrace(grace)
  if (globalThis[OWNER]) {
    throw new Error(`work() of pg-pulse ${globalThis[OWNER]} has the jobs of this program: ` +
      'give all tasks to one call')
  }
  const fd = takeDescriptor(command)
  const connect = fd === undefined ? connectorFor(connection, command) : undefined
  globalThis[OWNER] = library
  try {
    route(console)
    if (fd !== undefined) await new Program(fd, byName).serve({ takes, name })
    else await workDirectly(connect, byName, { takes, grace, name: name ?? 'pg-pulse' })
  } finally {
    delete globalThis[OWNER]
  }
}

module.exports = { work }
