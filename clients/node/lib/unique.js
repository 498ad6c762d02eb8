'use strict'
// The key of `unique`: canonical JSON of members of the payload. Every library of pg_pulse makes
// the same key of the same payload, and clients/vectors has examples that all libraries pass.
const { createHash } = require('node:crypto')
const { encode, NotJson } = require('./json')

// A longer key is its digest.
const MAX_BYTES = 256

/** By code points, as the bytes of UTF-8 order them, and unlike the code units of JavaScript. */
function byCodePoint(a, b) {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

function canonicalNumber(value) {
  if (!Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER) {
    throw new NotJson(`a unique key has the number ${value}: give it as a text`)
  }
  return JSON.stringify(value === 0 ? 0 : value)
}

function canonicalText(value) {
  if (/\p{Surrogate}/u.test(value)) {
    throw new NotJson('a unique key has half of a surrogate pair')
  }
  return JSON.stringify(value)
}

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value === 'number') return canonicalNumber(value)
  if (typeof value === 'string') return canonicalText(value)
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const names = Object.keys(value).sort(byCodePoint)
  return `{${names.map((name) => `${canonicalText(name)}:${canonical(value[name])}`).join(',')}}`
}

function membersOf(payload, by) {
  if (payload === null || typeof payload !== 'object' || Array.isArray(payload)) {
    throw new TypeError('unique.by names members, and the payload is no object: leave `by` out')
  }
  if (!Array.isArray(by)) throw new TypeError('unique.by is a list of members')
  const names = by.filter((name) => Object.hasOwn(payload, name))
  return Object.fromEntries(names.map((name) => [name, payload[name]]))
}

/** The key of a payload by these members, in any order; without `by` of the whole payload. */
function uniqueKey(payload, by) {
  // As the server gets the payload: dates are texts by then, and undefined members are gone.
  const document = JSON.parse(encode(payload, 'the payload'))
  const text = canonical(by != null ? membersOf(document, by) : document)
  if (Buffer.byteLength(text) <= MAX_BYTES) return text
  return `sha256:${createHash('sha256').update(text).digest('hex')}`
}

module.exports = { uniqueKey }
