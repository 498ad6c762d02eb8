'use strict'

/** The driver pg of the application. */
function driver() {
  return require(require.resolve('pg', { paths: [process.cwd(), __dirname] }))
}

// As long as the library for Python waits for a host that says nothing.
const CONNECT_MS = 10_000

/** A function that makes clients. `connection`: a URL, or the settings of pg; without a connection
 * PGHOST and so on. */
function connector(connection) {
  const { Client } = driver()
  const settings = typeof connection === 'string' ? { connectionString: connection } : connection
  return () => new Client({ application_name: 'pg-pulse', keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS, ...settings })
}

module.exports = { connector, driver }
