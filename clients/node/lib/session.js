'use strict'
// A session of the direct mode: opened when first asked, and anew when the connection breaks.
const { setTimeout: pause } = require('node:timers/promises')
const { translate } = require('./errors')

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5000
// What the first statements of a session take at most.
const SETTLE_MS = 30_000

// Whatever the defaults of the database are. A standby refuses the first: its answers are of a time
// before, and it carries nothing out.
const SETTINGS = `SET transaction_read_only = off;
  SET default_transaction_isolation = 'read committed';
  SET default_transaction_read_only = off; SET statement_timeout = 0; SET lock_timeout = 0;
  SET idle_session_timeout = 0; SET idle_in_transaction_session_timeout = 0;
  SET jit = off; SET max_parallel_workers_per_gather = 0`

/** Whether the call may have been carried out, or not: the connection is gone. */
function isCut(error) {
  // An error of the server has a severity; 08 and 57P are ends of connections and of the server.
  return error?.severity === undefined || /^(?:08|57P)/.test(error.code)
}

/** That of a host with several addresses has no message of its own. */
const messageOf = (error) =>
  error.message || error.errors?.map(({ message }) => message).join('; ') || String(error)

// The classes of refusals that say nothing of the call, as pulse-worker has them: the server has no
// room, has been told to stop, or others were in the way.
const PASSING = /^(?:08|25|40|53|55|57|58)/

const cutAfter = (ms, client) => setTimeout(() => client.connection.stream.destroy(), ms)

class Session {
  #connect
  #prepare
  #notice
  #complain
  #lost
  #back
  #opened
  // Settles when the client that was opened last has ended: old versions of pg then never settle
  // the promise of end().
  #gone
  #last = Promise.resolve()
  #asksOnce = false
  #ending

  /** `lost` hears why the session is away, again at each try that fails; `back` hears that the
   * session is open. */
  constructor(connect, { prepare, notice, complain, lost, back }) {
    this.#connect = connect
    this.#prepare = prepare
    this.#notice = notice
    this.#complain = complain
    this.#lost = lost
    this.#back = back
  }

  /** The server process of this session; undefined while there is none. */
  pid

  async #open() {
    const client = this.#connect()
    this.#gone = new Promise((resolve) => client.on('end', resolve))
    client.on('error', () => {})
    client.on('notice', this.#notice)
    let timer
    try {
      await client.connect()
      timer = cutAfter(SETTLE_MS, client)
      await client.query(SETTINGS)
      await this.#prepare?.(client)
    } catch (error) {
      client.end().catch(() => {})
      throw error
    } finally {
      clearTimeout(timer)
    }
    this.pid = client.processID
    this.#back?.(this)
    return client
  }

  /** Rejects where a pooler stands between: the end of the session must tell of the end of the
   * worker. */
  async check() {
    const [{ pid }] = await this.query('SELECT pg_backend_pid() AS pid').catch((cause) => {
      throw new Error(`${messageOf(cause)}\nhint: connection, ` +
        'or PGHOST, PGDATABASE, PGUSER, PGPASSWORD … say where to connect and as whom', { cause })
    })
    if (pid === this.pid) return
    throw new Error('a pooler stands between this worker and the server: give the worker a ' +
      'direct connection, or run the program under pulse-worker --program')
  }

  /** The rows, or the error, of one try. With `within` an answer must come in so many ms. An error
   * that isPassing may be none at the next try. */
  query(text, values, within) {
    // One after the other: pg 8 warns of a client that is asked meanwhile, and pg 9 refuses.
    const answer = this.#last.then(() => this.#query(text, values, within))
    this.#last = answer.catch(() => {})
    return answer
  }

  async #query(text, values, within) {
    if (this.#ending) throw new Error('the session is over')
    const opened = this.#opened ??= this.#open()
    let client
    let timer
    try {
      client = await opened
      if (within) timer = cutAfter(within, client)
      return (await client.query(text, values)).rows
    } catch (error) {
      // A session that did not open is opened anew, whatever the reason was: the call is not
      // refused.
      const isGone = !client || isCut(error)
      error.isPassing = isGone || PASSING.test(error.code)
      error.isGone = isGone
      if (isGone && this.#opened === opened) {
        this.#opened = this.pid = undefined
        client?.end().catch(() => {})
        this.#lost?.(this, messageOf(error))
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
        if (!error.isPassing) throw translate(error)
        if (this.#asksOnce) throw error
        if (!error.isGone) this.#complain?.(error)
        await pause(delay * (0.5 + Math.random()))
      }
    }
  }

  /** From now on. */
  askOnce() {
    this.#asksOnce = true
  }

  /** A query that waits for its answer fails, and so does each later one. */
  end() {
    this.askOnce()
    return this.#ending ??= this.#end()
  }

  async #end() {
    const client = await this.#opened?.catch(() => undefined)
    if (client) await Promise.race([client.end().catch(() => {}), this.#gone])
  }
}

module.exports = { Session, isCut }
