'use strict'
// Calls of the schema pulse: a function for each function of SQL, by its name in camel case. The
// client of the caller, and so the transaction of the caller, runs the statement.
const functions = require('./generated/functions')
const { json } = require('./json')
const { checkList, flowDocument, parameter, placeholder, toSnakeCase } = require('./parameters')
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

/** Refuses what must be given and is not: a value that an object does not have is undefined. */
function checkGiven(name, argument, type, value) {
  const isLeftOut = value === undefined && argument !== 'payload'
  if (isLeftOut) throw new TypeError(`${name} wants ${argument}`)
  if (type.endsWith('[]')) checkList(value, argument)
}

async function call(db, name, positional, options) {
  const { given, takes, gives } = functions[name]
  const values = {}
  given.forEach((argument, i) => {
    checkGiven(name, argument, takes[argument], positional[i])
    values[argument] = positional[i]
  })
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
calls.addJob = async (db, identifier, payload, given) => {
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

calls.addFlow = async (db, jobs, options) =>
  call(db, 'addFlow', [jobs === undefined ? jobs : json(flowDocument(jobs))], options)

const major = (version) => version.split('.').slice(0, 2).join('.')

/** Rejects where the database has no extension, or one that this library is not made for. */
async function checkVersion(db) {
  const [row] = await query(db,
    "SELECT extversion AS version FROM pg_extension WHERE extname = 'pg_pulse'")
  if (!row) throw noExtension()
  if (major(row.version) !== major(library)) throw otherVersion(row.version)
  return row.version
}

module.exports = { calls, query, checkVersion }
