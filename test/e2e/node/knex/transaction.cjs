// Jobs in transactions of Knex: one commits, one does not.
const assert = require('node:assert')
const { addFlow, addJob, ended, fromKnex, OutOfRange } = require(process.argv[2])
const knex = require('knex')({ client: 'pg', connection: {}, pool: { min: 0, max: 2 } })

async function buy(id, isDeclined) {
  await knex.transaction(async (trx) => {
    await trx('purchase').insert({ id })
    const job = await addJob(fromKnex(trx), 'receipt', { purchase: id, text: 'really? $1' },
      { queueName: 'mail', runAt: new Date('2100-01-01'), flags: ['a'] })
    assert.strictEqual(typeof job.id, 'string')
    assert.deepStrictEqual(job.payload, { purchase: id, text: 'really? $1' })
    await addFlow(fromKnex(trx),
      [{ key: 'a', identifier: 'part' }, { identifier: 'all', after: ['a', job.id] }])
    if (isDeclined) throw new Error('declined')
  })
}

async function main() {
  await knex.schema.createTable('purchase', (table) => table.integer('id'))
  await buy(1, false)
  await assert.rejects(buy(2, true), /declined/)
  await assert.rejects(knex.transaction((trx) => addJob(fromKnex(trx), '..')), OutOfRange)
  let over
  await knex.transaction(async (trx) => { over = fromKnex(trx) })
  await assert.rejects(addJob(over, 'receipt'), /already complete/)
  assert.deepStrictEqual(await ended(fromKnex(knex), [1]), [])
  const { rows } = await knex.raw('SELECT identifier FROM pulse.job ORDER BY id')
  assert.deepStrictEqual(rows.map((row) => row.identifier), ['receipt', 'part', 'all'])
  await knex.destroy()
}

main()
