'use strict'

/** A transaction of Prisma as a client. Prisma sends texts, and hides the error of the server. */
function fromPrisma(transaction) {
  return {
    query: (text, values = []) =>
      transaction.$queryRawUnsafe(text.replace(/\$\d+/g, '$&::text'), ...values).catch((error) => {
        throw Object.assign(error, error.meta?.driverAdapterError?.cause)
      }),
  }
}

module.exports = { fromPrisma }
