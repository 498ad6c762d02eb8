'use strict'
// How an attempt has ended, as members of a line of the worker protocol: result, error, retry,
// retry_in, payload, snooze, checkpoint, done.
const { inspect } = require('node:util')
const { current } = require('./console')
const { frozen, lineOf } = require('./json')
const { END, run } = require('./task')

// Of a longer error the server would keep the end, and the beginning of a stack says most.
const MAX_ERROR_BYTES = 8000
const MAX_CAUSES = 5

// Frames of the library say nothing of the handler.
function withoutLibrary(stack) {
  const isOurs = (line) => line.startsWith('    at ') && line.includes(`${__dirname}/`)
  return stack.split('\n').filter((line) => !isOurs(line)).join('\n')
}

function ownStackOf({ name, message, stack }) {
  return typeof stack === 'string' && stack ? withoutLibrary(stack) : `${name}: ${message}`
}

function stackOf(error) {
  const texts = []
  for (let each = error; each instanceof Error && texts.length < MAX_CAUSES; each = each.cause) {
    // An AggregateError says nothing itself, as that of a host with several addresses.
    const several = Array.isArray(each.errors) ? each.errors.slice(0, MAX_CAUSES) : []
    texts.push([each, ...several].map((one) => (one instanceof Error ? ownStackOf(one)
      : inspect(one))).join('\nof several: '))
  }
  return texts.join('\ncaused by ')
}

/** The text of whatever a handler has thrown, bounded; NUL, which no server stores, is as
 * pulse-worker writes it. */
function errorText(thrown) {
  let text
  try {
    text = thrown instanceof Error ? stackOf(thrown)
      : typeof thrown === 'string' ? thrown : `the handler threw ${inspect(thrown)}`
  } catch {
    text = 'the handler threw a value that cannot be shown'
  }
  const bytes = Buffer.from(text.replaceAll('\0', '\uFFFD'))
  if (bytes.length <= MAX_ERROR_BYTES) return bytes.toString()
  // The bytes of a character that is cut become the sign for what cannot be read.
  return `${bytes.toString('utf8', 0, MAX_ERROR_BYTES).replace(/\uFFFD+$/, '')}…`
}

// An end by the words of the library: a snooze, or a failure with more to say.
function ofEnd({ snooze, checkpoint, retry, retryIn, payload }, thrown) {
  const end = snooze === undefined
    ? { error: errorText(thrown), retry: retry === false ? false : undefined, retry_in: retryIn }
    : { snooze }
  if (checkpoint !== undefined) end.checkpoint = frozen(checkpoint, 'the checkpoint')
  if (payload !== undefined) end.payload = frozen(payload, 'the rest of the work')
  return end
}

function ofValue(job, value) {
  if (value?.[END]) return ofEnd(value[END], value)
  if (job.isCompleted) return { done: true }
  return { result: frozen(value, `the result of ${job.identifier}`) }
}

const ofThrown = (thrown) => ofEnd(thrown?.[END] ?? {}, thrown)

/** The line that tells of an end; throws where it is too large. */
const answerOf = (job, end) => lineOf(job, end, `the answer of ${job.identifier}`)

function bounded(job, end) {
  answerOf(job, end)
  return end
}

/** Runs the handler of a task; resolves to what `told` makes of the end. An end that is no JSON, or
 * that `told` refuses, is an error in its turn. */
async function attempt(task, job, told = (end) => bounded(job, end)) {
  try {
    return told(ofValue(job, await current.run(job, () => run(task, job))))
  } catch (thrown) {
    try {
      return told(ofThrown(thrown))
    } catch (error) {
      return told(ofThrown(error))
    }
  }
}

module.exports = { attempt, answerOf, errorText }
