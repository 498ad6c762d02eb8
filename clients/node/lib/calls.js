'use strict'
// Calls of the schema pulse: a function for each function of SQL, by its name in camel case. The
// client of the caller, and so the transaction of the caller, runs the statement.
const functions = require('./generated/functions')
const { encode, json } = require('./json')
const { translate, noExtension, otherVersion, library } = require('./errors')
const { uniqueKey } = require('./unique')

/** The rows of a statement; `db` is anything with query(text, values). */
async function query(db, text, values = []) {
  if (typeof db?.query !== 'function') {
    throw new TypeError('the first argument has no query(text, values): give a client or pool of ' +
      'node-postgres, fromKnex(transaction) or fromPrisma(transaction)')
  }
  try {
    const result = await db.query(text, values)
    return result?.rows ?? result
  } catch (error) {
    throw translate(error)
  }
}

const toSnakeCase = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** The members of an object by their names in SQL. */
function inSql(object) {
  const members = Object.entries(object)
  return Object.fromEntries(members.map(([name, value]) => [toSnakeCase(name), value]))
}

const specMembers = ['identifier', 'payload', 'queue_name', 'run_at', 'max_attempts', 'job_key',
  'priority', 'flags']

// A null is no value of a record, and a payload may be null.
const specColumns = specMembers.map((name) =>
  (name === 'payload' ? "coalesce(r.payload, s -> 'payload')" : `r.${name}`)).join(', ')

function specOf(job) {
  const spec = inSql(job)
  const unknown = Object.keys(spec).find((name) => !specMembers.includes(name))
  if (unknown) throw new TypeError(`a job has no ${unknown}: it has ${specMembers.join(', ')}`)
  return spec
}

function arrayLiteral(values) {
  if (typeof values === 'string') {
    throw new TypeError(`a list is wanted, and the text '${values}' is given`)
  }
  const quoted = (value) => `"${String(value).replace(/["\\]/g, '\\$&')}"`
  const element = (value) => (value == null ? 'NULL' : quoted(value))
  return `{${Array.from(values, element).join(',')}}`
}

/** An interval of so many seconds: a server reads no 1e-7. */
const interval = (seconds) => `${seconds.toFixed(6)} seconds`

// A parameter as text, which every driver sends as it is.
function parameter(type, value, name) {
  if (type === 'json') return encode(value, name === 'payload' ? 'the payload' : name)
  if (type === 'pulse.job_spec[]') return encode(Array.from(value, specOf), name)
  if (value == null) return null
  if (type.endsWith('[]')) return arrayLiteral(value)
  if (type === 'interval' && typeof value === 'number') return interval(value)
  if (value instanceof Date) return value.toISOString()
  return String(value)
}

function placeholder(type, n) {
  if (type === 'json' || type === 'text') return `$${n}::${type}`
  if (type !== 'pulse.job_spec[]') return `$${n}::text::${type}`
  return `ARRAY(SELECT ROW(${specColumns})::pulse.job_spec
    FROM json_array_elements($${n}::json) AS s, json_populate_record(NULL::pulse.job_spec, s) AS r)`
}

const statements = new Map()

/** The statement of a call with these arguments; made once for each set of arguments. */
function statementOf(name, given) {
  const key = `${name} ${given}`
  if (!statements.has(key)) statements.set(key, makeStatement(functions[name], given))
  return statements.get(key)
}

function makeStatement(call, given) {
  const values = given.map((argument, i) =>
    `${toSnakeCase(argument)} => ${placeholder(call.takes[argument], i + 1)}`)
  const invoked = `pulse.${call.name}(${values.join(', ')})`
  if (call.isProcedure) return `CALL ${invoked}`
  if (call.gives === 'nothing') return `SELECT FROM ${invoked}`
  return `SELECT ${call.columns.join(', ')} FROM ${invoked} AS value`
}

const results = {
  row: ([row]) => (row && Object.values(row).some((value) => value !== null) ? row : null),
  rows: (rows) => rows,
  value: ([row]) => (row ? Object.values(row)[0] : null),
  values: (rows) => rows.map((row) => row.value),
  nothing: () => undefined,
}

async function call(db, name, positional, options) {
  const { given, takes, gives } = functions[name]
  const values = {}
  given.forEach((argument, i) => { values[argument] = positional[i] })
  for (const argument of Object.keys(options ?? {})) {
    if (!(argument in takes)) {
      throw new TypeError(`${name} has no option ${argument}: it has ` +
        Object.keys(takes).filter((other) => !given.includes(other)).join(', '))
    }
    values[argument] = options[argument]
  }
  const names = Object.keys(values).filter((argument) => values[argument] !== undefined)
  const text = statementOf(name, names)
  const rows = await query(db, text, names.map((n) => parameter(takes[n], values[n], n)))
  return results[gives](rows)
}

const calls = {}
for (const [name, { given }] of Object.entries(functions)) {
  calls[name] = (db, ...rest) => call(db, name, rest.slice(0, given.length), rest[given.length])
}

/** Adds a job in the caller's transaction; with `unique` once in a period. */
calls.addJob = (db, identifier, payload, given) => {
  const { unique, ...options } = given ?? {}
  if (!unique) return call(db, 'addJob', [identifier, payload], options)
  const unknown = Object.keys(unique).find((name) => !['for', 'by', 'states'].includes(name))
  if (unknown || unique.for === undefined) {
    throw new TypeError(`unique has for, by and states, and is ${JSON.stringify(unique)}`)
  }
  const key = uniqueKey(payload === undefined ? {} : payload, unique.by)
  return call(db, 'addJobOnce', [unique.for, key, identifier, payload],
    { ...options, states: unique.states })
}

// In `after` a text is the key of a job of the flow; all else is the id of a job, digit for digit.
function flowDocument(jobs) {
  const keys = new Set(jobs.map((job) => job.key))
  const parent = (value) => (keys.has(value) ? JSON.stringify(value)
    : /^\d+$/.test(value) ? String(value) : encode(value, 'after'))
  const member = ([name, value]) => `${JSON.stringify(name)}:` + (name === 'after'
    ? `[${Array.from(value, parent).join(',')}]` : encode(value, name))
  const object = (job) => `{${Object.entries(inSql(job)).filter(([, value]) => value !== undefined)
    .map(member).join(',')}}`
  return `[${jobs.map(object).join(',')}]`
}

calls.addFlow = (db, jobs, options) => call(db, 'addFlow', [json(flowDocument(jobs))], options)

const major = (version) => version.split('.').slice(0, 2).join('.')

/** Rejects where the database has no extension, or one that this library is not made for. */
async function checkVersion(db) {
  const [row] = await query(db,
    "SELECT extversion AS version FROM pg_extension WHERE extname = 'pg_pulse'")
  if (!row) throw noExtension()
  if (major(row.version) !== major(library)) throw otherVersion(row.version)
  return row.version
}

module.exports = { arrayLiteral, calls, interval, query, checkVersion }
