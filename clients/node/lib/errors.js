'use strict'
// Errors: a class for each SQLSTATE of pg_pulse, and sentences for the faults of a connection that
// a producer meets. `code`, `hint` and `detail` are those of the server, `cause` is its error.

class PulseError extends Error {
  constructor(message, { code, hint, detail, cause } = {}) {
    super(hint ? `${message}\nHINT: ${hint}` : message, { cause })
    Object.assign(this, { code, hint, detail })
  }

  get name() {
    return this.constructor.name
  }
}

// Of one class for each SQLSTATE the name; the last two are for several.
const names = {
  PU001: 'ClaimLost', PU002: 'WorkerUnknown', PU003: 'SettingsRefused', PU004: 'OutOfRange',
  PU005: 'NotFound', PU006: 'InTransaction', PU007: 'WrongIsolation', PU008: 'ClaimsOff',
  PU009: 'JobsWouldBeLost', PU010: 'JobMustNotRun', 42501: 'NotGranted', 25006: 'ReadOnly',
  '25P02': 'Aborted', none: 'NoExtension', other: 'OtherVersion',
}
const classes = {}
for (const name of Object.values(names)) {
  classes[name] = { [name]: class extends PulseError {} }[name]
}

// Ways out for errors of the server that have none, or a general one.
const hints = {
  42501: 'The owner of the extension grants it: SELECT pulse.grant_producer(ROLE).',
  25006: 'Connect to the primary, or begin the transaction with READ WRITE.',
  '25P02': 'An earlier statement of this transaction has failed: ROLLBACK, and repeat all of it.',
}

const library = require('../package.json').version
const install = 'Install pg_pulse on the server and run CREATE EXTENSION pg_pulse in this database.'
const update =
  'Install those files of pg_pulse on the server and run ALTER EXTENSION pg_pulse UPDATE, ' +
  'or npm install the version of pg-pulse that the extension has.'

// What a statement says of a schema, function, type or column that is not there.
const missing = /^(?:3F000|42883|42P01|42704|42703)$/

/** The error of a database as one of this library; other errors stay as they are. */
function translate(error) {
  const code = error?.code
  if (typeof code !== 'string') return error
  if (missing.test(code)) return ofMissing(error)
  if (!Object.hasOwn(names, code)) return error
  const { message, detail, hint = hints[code] } = error
  return new classes[names[code]](message, { code, hint, detail, cause: error })
}

function ofMissing(error) {
  const { code, message } = error
  if (code === '3F000' && message.includes('"pulse"')) {
    return noExtension({ code, cause: error })
  }
  if (!/\bpulse\.|column/.test(message)) return error
  return otherVersion(`another version: ${message}`, { code, cause: error })
}

function noExtension(more) {
  const text = 'the database has no extension pg_pulse'
  return new classes.NoExtension(text, { hint: install, ...more })
}

function otherVersion(found, more) {
  const text = `this library is for pg_pulse ${library}, and the database has ${found}`
  return new classes.OtherVersion(text, { hint: update, ...more })
}

const errors = { PulseError, ...classes }

module.exports = { errors, translate, noExtension, otherVersion, library }
