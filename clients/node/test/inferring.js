'use strict'
// A client as postgres.js is one: it asks the server for the type of each parameter, and writes
// what is a json to the server as JSON, whatever the caller has given.

function inferring(client) {
  async function typesOf(text) {
    await client.query(`PREPARE inferred AS ${text}`)
    const { rows: [{ types }] } = await client.query(
      `SELECT parameter_types::text[] AS types FROM pg_prepared_statements
        WHERE name = 'inferred'`)
    await client.query('DEALLOCATE inferred')
    return types
  }
  return {
    release: () => client.release(),
    async query(text, values) {
      if (!values?.length) return client.query(text)
      const types = await typesOf(text)
      return client.query(text, values.map((value, i) =>
        (types[i].startsWith('json') && value !== null ? JSON.stringify(value) : value)))
    },
  }
}

module.exports = { inferring }
