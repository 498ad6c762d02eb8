'use strict'
// Routes console.* of a handler to the log of its job, however many jobs run at once. Each call is
// one line there: a flood of stacks must not use up the lines that the worker tells in a second.
const { AsyncLocalStorage } = require('node:async_hooks')
const { format, inspect } = require('node:util')

const levels = { debug: 'debug', trace: 'debug', dir: 'info', dirxml: 'info', log: 'info',
  info: 'info', warn: 'warning', error: 'error' }

/** The job whose handler runs; undefined outside of handlers. */
const current = new AsyncLocalStorage()

function textOf(method, values) {
  if (method === 'dir') return inspect(values[0], values[1])
  if (method !== 'trace') return format(...values)
  const { stack } = new Error()
  return [format(...values), ...stack.split('\n').slice(3)].join('\n')
}

/** The console as it was before any routing. */
const plain = Object.fromEntries(Object.keys(levels).map((method) => [method, console[method]]))

const routed = new WeakSet()

// Another copy of the library may have routed the console before: outside of the jobs of this copy
// the method from before is called. A program that calls work() again and again has one routing.
function route(console) {
  for (const [method, level] of Object.entries(levels)) {
    const before = console[method]
    if (routed.has(before)) continue
    console[method] = function (...values) {
      const job = current.getStore()
      if (!job || job.isOver) return before.apply(this, values)
      job.log(textOf(method, values), level)
    }
    routed.add(console[method])
  }
}

module.exports = { current, plain, route }
