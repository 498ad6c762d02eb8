'use strict'
// Arguments of calls as parameters. Each parameter is a text or null, which every driver sends as
// it is.
const { inspect, types: { isDate } } = require('node:util')
const functions = require('./generated/functions')
const { encode } = require('./json')

const toSnakeCase = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** The members of an object by their names in SQL, without those that are undefined. */
function inSql(object) {
  const members = Object.entries(object).filter(([, value]) => value !== undefined)
  return Object.fromEntries(members.map(([name, value]) => [toSnakeCase(name), value]))
}

/** Refuses what has no elements, and a text, whose elements are characters. */
function checkList(value, name) {
  if (typeof value !== 'string' && typeof value?.[Symbol.iterator] === 'function') return
  const shown = inspect(value, { depth: 1, maxStringLength: 100, breakLength: Infinity })
  throw new TypeError(`${name}: a list is wanted, and ${shown} is given`)
}

/** Refuses half of a surrogate pair: drivers send another character, and two keys become one. */
function checkWhole(text, name) {
  if (!/\p{Surrogate}/u.test(text)) return
  throw new TypeError(`${name} is ${JSON.stringify(text)}, which has half of a surrogate pair: ` +
    'cut texts between characters')
}

function arrayLiteral(values) {
  const quoted = (value) => `"${String(value).replace(/["\\]/g, '\\$&')}"`
  const element = (value) => (value == null ? 'NULL' : quoted(value))
  return `{${Array.from(values, element).join(',')}}`
}

/** An interval of so many seconds: a server reads no 1e-7. */
const interval = (seconds) => `${seconds.toFixed(6)} seconds`

// A server reads neither the sign before a year beyond 9999 nor the year 0.
function timeOf(date, name) {
  const year = date.getUTCFullYear()
  if (Number.isNaN(year)) throw new RangeError(`${name} is an invalid Date`)
  const rest = date.toISOString().replace(/^[+-]?\d+/, '')
  return year > 0 ? String(year).padStart(4, '0') + rest
    : `${String(1 - year).padStart(4, '0')}${rest} BC`
}

/** A value as the text of a type of SQL, or of a list as texts. */
function textOf(type, value, name) {
  if (value == null) return null
  if (type.endsWith('[]')) {
    checkList(value, name)
    return Array.from(value, (element) => textOf(type.slice(0, -2), element, name))
  }
  if (isDate(value)) return timeOf(value, name)
  const text = type === 'interval' && typeof value === 'number' ? interval(value) : String(value)
  checkWhole(text, name)
  return text
}

// --- jobs of a call ---

const specMembers = ['identifier', 'payload', 'queue_name', 'run_at', 'max_attempts', 'job_key',
  'priority', 'flags']
const memberTypes = { ...inSql(functions.addJobAfter.takes), key: 'text' }

/** A member of a job as JSON, with the checks of an argument of addJob(). */
function memberOf(name, value) {
  const type = memberTypes[name]
  if (name === 'payload') return encode(value, 'the payload')
  return type ? JSON.stringify(textOf(type, value, name)) : encode(value, name)
}

function objectOf(members) {
  return `{${members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`
}

/** A job without its payload, and the payload: a server reads the members of a record twice, and
 * then refuses payloads that addJob() takes. */
function specOf(job) {
  const { payload, ...spec } = inSql(job)
  const unknown = Object.keys(spec).find((name) => !specMembers.includes(name))
  if (unknown) throw new TypeError(`a job has no ${unknown}: it has ${specMembers.join(', ')}`)
  const members = Object.entries(spec).map(([name, value]) => [name, memberOf(name, value)])
  return [objectOf(members), payload === undefined ? null : memberOf('payload', payload)]
}

const specs = (n) => `ARRAY(SELECT ROW(r.identifier, p.payload::json, r.queue_name, r.run_at,
      r.max_attempts, r.job_key, r.priority, r.flags)::pulse.job_spec
    FROM (SELECT u.n, u.value AS spec, lead(u.value) OVER (ORDER BY u.n) AS payload
        FROM unnest($${n}::text::text[]) WITH ORDINALITY AS u (value, n)) AS p,
      json_populate_record(NULL::pulse.job_spec, p.spec::json) AS r
    WHERE p.n % 2 = 1 ORDER BY p.n)`

/** The jobs of a flow. In `after` a text is the key of a job of the flow; all else is the id of a
 * job, digit for digit. */
function flowDocument(jobs) {
  checkList(jobs, 'jobs')
  const flow = Array.from(jobs, inSql)
  const keys = new Set(flow.map((job) => job.key))
  const parent = (value) => {
    const text = textOf('bigint', value, 'after')
    const isKey = typeof value === 'string' && keys.has(value)
    return !isKey && /^\d+$/.test(text) ? text : JSON.stringify(text)
  }
  const parents = (after) => {
    checkList(after, 'after')
    return `[${Array.from(after, parent).join(',')}]`
  }
  const members = (job) => Object.entries(job).map(([name, value]) =>
    [name, name === 'after' ? parents(value) : memberOf(name, value)])
  return `[${flow.map((job) => objectOf(members(job))).join(',')}]`
}

// --- arguments ---

/** An argument of a type of SQL, in the place of placeholder(). */
function parameter(type, value, name) {
  if (type === 'json') return encode(value, name === 'payload' ? 'the payload' : name)
  if (type === 'pulse.job_spec[]') return arrayLiteral(Array.from(value, specOf).flat())
  const text = textOf(type, value, name)
  return Array.isArray(text) ? arrayLiteral(text) : text
}

// As text first: a driver that asks the server for the types of parameters would write what is a
// json, or a list, a second time.
function placeholder(type, n) {
  if (type === 'pulse.job_spec[]') return specs(n)
  return type === 'text' ? `$${n}::text` : `$${n}::text::${type}`
}

module.exports = {
  arrayLiteral, checkList, checkWhole, flowDocument, interval, parameter, placeholder, toSnakeCase,
}
