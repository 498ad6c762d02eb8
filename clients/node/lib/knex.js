'use strict'

/** A transaction of Knex as a client. Knex writes parameters as question marks. */
function fromKnex(transaction) {
  return {
    query: (text, values = []) =>
      transaction.raw(text.replaceAll('?', '\\?').replace(/\$\d+/g, '?'), values),
  }
}

module.exports = { fromKnex }
