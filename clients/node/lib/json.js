'use strict'
// JSON as the library writes it: for payloads, results, checkpoints and lines.

// Marks a value that is JSON already. A symbol of all copies of the library.
const RAW = Symbol.for('pg-pulse.json')

// A line of a program, as the worker bounds it.
const MAX_LINE_BYTES = 1024 * 1024

class NotJson extends TypeError {
  name = 'NotJson'
}

/** A document of JSON as a text, which is stored digit for digit. */
function json(text) {
  JSON.parse(text)
  const escaped = (half) => `\\u${half.charCodeAt().toString(16)}`
  return {
    // A line break is white space between tokens, and would end a line of the protocol. Half of a
    // surrogate pair is within a text, and a driver would send another character.
    [RAW]: text.replace(/[\r\n]/g, ' ').replace(/\p{Surrogate}/gu, escaped),
    toJSON() {
      throw new NotJson('json(text) is a whole document, and no part of another')
    },
  }
}

/** The text of a value; `what` names the value where it is no JSON. */
function encode(value, what) {
  // Some proxies answer to any name.
  if (typeof value?.[RAW] === 'string') return value[RAW]
  let text
  try {
    text = JSON.stringify(value)
  } catch (error) {
    const [reason] = String(error?.message ?? error).split('\n')
    throw new NotJson(`${what} is no JSON: ${reason}`)
  }
  if (text === undefined && value !== undefined) {
    throw new NotJson(`${what} is no JSON: it is a ${typeof value}`)
  }
  return text ?? 'null'
}

/** A value as the document that encode() makes of it by now. */
const frozen = (value, what) => ({ [RAW]: encode(value, what) })

/** What a job says, as a line of the worker protocol; `what` names a value that is too large. */
function lineOf(job, members, what) {
  let line = `{"id":${JSON.stringify(job.key)}`
  for (const [name, value] of Object.entries(members)) {
    if (value !== undefined) line += `,"${name}":${encode(value)}`
  }
  line += '}\n'
  if (line.length < MAX_LINE_BYTES / 3) return line
  const bytes = Buffer.byteLength(line)
  if (bytes <= MAX_LINE_BYTES) return line
  throw new NotJson(`${what} has ${bytes} bytes, and a line has at most ${MAX_LINE_BYTES}: ` +
    'store it elsewhere, and give its place')
}

/** A text of whole characters: a cut may leave half of a surrogate pair, which is no text
 * elsewhere. */
const whole = (text) => Buffer.from(text).toString()

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/gs

/** The member of an object as the text of the object spells it; undefined where there is none. */
function memberText(text, name) {
  const token = new RegExp(TOKEN)
  let [depth, begin, before] = [0, -1, '']
  for (let match; (match = token.exec(text)); ) {
    const [piece] = match
    if (begin >= 0 && depth === 1 && (piece === ',' || piece === '}')) {
      return text.slice(begin, match.index).trim()
    }
    // In the outermost object a colon stands behind a name only.
    if (depth === 1 && piece === ':' && JSON.parse(before) === name) begin = token.lastIndex
    if (piece === '{' || piece === '[') depth++
    if (piece === '}' || piece === ']') depth--
    before = piece
  }
  return undefined
}

module.exports = { json, encode, frozen, lineOf, memberText, whole, NotJson }
