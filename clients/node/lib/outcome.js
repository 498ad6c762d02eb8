'use strict'
// How an attempt has ended, as members of a line of the worker protocol, each as JSON: result,
// error, retry, retry_in, payload, snooze, checkpoint, done.
const { inspect } = require('node:util')
const { encode } = require('./json')
const { END } = require('./task')

// Of a longer error the server would keep the end, and the beginning of a stack says most.
const MAX_ERROR_BYTES = 8000
const MAX_CAUSES = 5

function stackOf(error) {
  const texts = []
  for (let each = error; each instanceof Error && texts.length < MAX_CAUSES; each = each.cause) {
    const { name, message, stack } = each
    texts.push(typeof stack === 'string' && stack ? stack : `${name}: ${message}`)
  }
  return texts.join('\ncaused by ')
}

/** The text of whatever a handler has thrown, bounded. */
function errorText(thrown) {
  let text
  try {
    text = thrown instanceof Error ? stackOf(thrown)
      : typeof thrown === 'string' ? thrown : `the handler threw ${inspect(thrown)}`
  } catch {
    text = 'the handler threw a value that cannot be shown'
  }
  return bounded(text)
}

function bounded(text) {
  if (text.length < MAX_ERROR_BYTES / 3) return text
  const bytes = Buffer.from(text)
  if (bytes.length <= MAX_ERROR_BYTES) return text
  // The bytes of a character that is cut become the sign for what cannot be read.
  return `${bytes.toString('utf8', 0, MAX_ERROR_BYTES).replace(/\uFFFD+$/, '')}…`
}

// An end by the words of the library: a snooze, or a failure with more to say.
function ofEnd({ snooze, checkpoint, retry, retryIn, payload }, thrown) {
  const members = snooze === undefined ? { error: JSON.stringify(errorText(thrown)) }
    : { snooze: encode(snooze, 'the delay') }
  if (checkpoint !== undefined) members.checkpoint = encode(checkpoint, 'the checkpoint')
  if (retry === false) members.retry = 'false'
  if (retryIn !== undefined) members.retry_in = encode(retryIn, 'retryIn')
  if (payload !== undefined) members.payload = encode(payload, 'the rest of the work')
  return members
}

/** The end of a handler that has returned. Throws where the value is no JSON. */
function ofValue(job, value) {
  const end = value?.[END]
  if (end) return ofEnd(end, value)
  if (job.isCompleted) return { done: 'true' }
  return { result: encode(value, `the result of ${job.identifier}`) }
}

/** The end of a handler that has thrown. */
function ofThrown(thrown) {
  const end = thrown?.[END]
  return end ? ofEnd(end, thrown) : { error: JSON.stringify(errorText(thrown)) }
}

module.exports = { errorText, ofThrown, ofValue }
