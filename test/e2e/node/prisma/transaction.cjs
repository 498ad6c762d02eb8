// Jobs in transactions of Prisma: one commits, one does not.
const assert = require('node:assert')
const { PrismaPg } = require('@prisma/adapter-pg')
const { PrismaClient } = require('@prisma/client')
const { addFlow, addJob, fromPrisma, Aborted, OutOfRange } = require(process.argv[2])
const prisma = new PrismaClient({ adapter: new PrismaPg({}) })

const buy = (id, isDeclined) =>
  prisma.$transaction(async (tx) => {
    await tx.purchase.create({ data: { id } })
    const payload = { purchase: id, text: 'really? $1' }
    const job = await addJob(fromPrisma(tx), 'receipt', payload,
      { queueName: 'mail', runAt: new Date('2100-01-01'), flags: ['a'], priority: 3 })
    assert.strictEqual(typeof job.id, 'string')
    assert.deepStrictEqual(job.payload, payload)
    await addFlow(fromPrisma(tx),
      [{ key: 'a', identifier: 'part' }, { identifier: 'all', after: ['a', job.id] }])
    if (isDeclined) throw new Error('declined')
  })

async function main() {
  await prisma.$executeRaw`CREATE TABLE purchase (id int PRIMARY KEY)`
  await buy(1, false)
  await assert.rejects(buy(2, true), /declined/)
  await assert.rejects(addJob(fromPrisma(prisma), '..'),
    (error) => error instanceof OutOfRange && /single slashes/.test(error.hint))
  await prisma.$transaction(async (tx) => {
    await tx.$queryRaw`SELECT 1/0`.catch(() => {})
    await assert.rejects(addJob(fromPrisma(tx), 'receipt'), Aborted)
  }).catch(() => {})
  const rows = await prisma.$queryRaw`SELECT identifier FROM pulse.job ORDER BY id`
  assert.deepStrictEqual(rows.map((row) => row.identifier), ['receipt', 'part', 'all'])
  assert.deepStrictEqual(await prisma.purchase.findMany(), [{ id: 1 }])
  await prisma.$disconnect()
}

main()
