'use strict'
// A session of the direct mode: opened when first asked, and anew when the connection breaks.
const { setTimeout: pause } = require('node:timers/promises')
const { translate } = require('./errors')

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5000

// Whatever the defaults of the database are.
const SETTINGS = `SET default_transaction_isolation = 'read committed';
  SET default_transaction_read_only = off; SET statement_timeout = 0; SET lock_timeout = 0;
  SET idle_session_timeout = 0; SET idle_in_transaction_session_timeout = 0`

/** Whether the call may have been carried out, or not: the connection is gone. */
function isCut(error) {
  // An error of the server has a severity; 08 and 57P are ends of connections and of the server.
  return error?.severity === undefined || /^(?:08|57P)/.test(error.code)
}

class Session {
  #connect
  #prepare
  #notice
  #opening
  #isEnded = false

  constructor(connect, { prepare, notice }) {
    this.#connect = connect
    this.#prepare = prepare
    this.#notice = notice
  }

  /** The server process of this session; undefined while there is none. */
  pid

  async #open() {
    const client = this.#connect()
    client.on('error', () => {})
    client.on('notice', this.#notice)
    client.on('end', () => this.#leave(client))
    try {
      await client.connect()
      await client.query(SETTINGS)
      await this.#prepare?.(client)
    } catch (error) {
      client.end().catch(() => {})
      throw error
    }
    this.pid = client.processID
    return client
  }

  async #leave(client) {
    const opened = await this.#opening?.catch(() => client)
    if (opened !== client) return
    this.#opening = undefined
    this.pid = undefined
  }

  /** Rejects where a pooler stands between: the end of the session must tell of the end of the
   * worker. */
  async check() {
    const [{ pid }] = await this.query('SELECT pg_backend_pid() AS pid')
    if (pid === this.pid) return
    throw new Error('a pooler stands between this worker and the server: give the worker a ' +
      'direct connection, or run the program under pulse-worker --program')
  }

  /** The rows, or the error, of one try. With `within` an answer must come in so many ms. */
  async query(text, values, within) {
    this.#opening ??= this.#open()
    const opening = this.#opening
    let client
    let timer
    try {
      client = await opening
      if (within) timer = setTimeout(() => client.connection.stream.destroy(), within)
      return (await client.query(text, values)).rows
    } catch (error) {
      if (isCut(error) && this.#opening === opening) {
        this.#opening = undefined
        this.pid = undefined
        client?.end().catch(() => {})
      }
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /** Asks until an answer comes, for calls that may be repeated. */
  async ask(text, values, within) {
    for (let delay = FIRST_PAUSE_MS; ; delay = Math.min(2 * delay, LONGEST_PAUSE_MS)) {
      try {
        return await this.query(text, values, within)
      } catch (error) {
        if (!isCut(error) || this.#isEnded) throw translate(error)
        await pause(delay * (0.5 + Math.random()))
      }
    }
  }

  async end() {
    this.#isEnded = true
    const client = await this.#opening?.catch(() => undefined)
    await client?.end().catch(() => {})
  }
}

module.exports = { Session, isCut }
