'use strict'
// Errors: a class for each SQLSTATE of pg_pulse, and sentences for the faults of a connection that
// a producer meets. `code`, `hint` and `detail` are those of the server, `cause` is its error.
const { names, hints, install, update } = require('./generated/errors')

class PulseError extends Error {
  constructor(message, { code, hint, detail, cause } = {}) {
    super(hint ? `${message}\nHINT: ${hint}` : message, { cause })
    Object.assign(this, { code, hint, detail })
  }

  get name() {
    return this.constructor.name
  }
}

const classes = {}
for (const name of [...Object.values(names), 'NoExtension', 'OtherVersion']) {
  classes[name] = { [name]: class extends PulseError {} }[name]
}

const library = require('../package.json').version

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
