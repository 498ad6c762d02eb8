// A shop in strict TypeScript. It is compiled, and not run: what compiles here is promised.
import {
  addFlow, addJob, addJobs, cancelJob, checkVersion, ClaimLost, ended, Failure, fromKnex,
  fromPrisma, JobCancelled, json, PayloadRefused, PulseError, readTasks, schedule, setQueue,
  setTask, task, uniqueKey, waitForEnd, work,
} from 'pg-pulse'
import type { AddOptions, Database, Job, StandardSchema, Task } from 'pg-pulse'
import { rolledBack, runJobs } from 'pg-pulse/testing'

// As node-postgres has them.
declare const client: {
  query<Row = any>(text: string, values?: any[]): Promise<{ rows: Row[] }>
  release(): void
}
declare const pool: { connect(): Promise<typeof client>; query: typeof client.query }

interface Purchase { purchase: number }
interface Receipt { total: string }

export const receipt = task('receipt', async ({ purchase }: Purchase, job): Promise<Receipt> => {
  const { rows: [row] } = await pool.query<Receipt>('SELECT total FROM purchase WHERE id = $1',
    [purchase])
  if (!row) throw new Failure(`there is no purchase ${purchase}`, { retry: false })
  const next: string = job.id
  job.progress(0.5, { message: next })
  await fetch('https://example.com', { signal: job.signal })
  return row
}, { takes: 4, unique: { for: '1 day', by: ['purchase'], states: ['waiting'] } })

const charge = task('charge', async ({ purchase }: Purchase, job) => {
  await client.query('INSERT INTO charge VALUES ($1)', [purchase])
  await job.complete(client)
})

const email: StandardSchema<{ to: string }> = {
  '~standard': {
    version: 1, vendor: 'shop', validate: (value) => ({ value: value as { to: string } }),
  },
}
// The payload has the type that the schema gives.
const mail = task('mail', ({ to }, job) => {
  const text: string = to.trim()
  return text === '' ? job.snooze(60, { checkpoint: { seen: true } }) : text
}, { schema: email })
const book = task('book', (_: object, job) => job.parents?.map(({ result }) => result) ?? [])

const added = await receipt.add(client, { purchase: 7 }, { queueName: 'mail/ada', priority: -1 })
const id: string = added.id
const options: AddOptions = { runAt: new Date(), unique: { for: 60 } }
await addJob(client, 'receipt', { purchase: 7 }, options)
await addJobs(client, [{ identifier: 'receipt', payload: [1, 2], jobKey: 'one' }])
const flow = await addFlow(client, [
  { key: 'one', identifier: 'page' }, { identifier: 'book', after: ['one', id, 17n, 5] }])
flow.map(({ key, id: of }) => [key, of])
await setQueue(pool, 'mail/*', { rate: 100, per: '1 minute' })
await setTask(pool, 'receipt', { keepCompleted: 60 })
await schedule(pool, 'nightly', 'receipt', { cron: '0 3 * * *', payload: { purchase: 1 } })
await cancelJob(pool, id, { reason: 'paid' })
await waitForEnd(pool, [id], { maxWait: '50 s' })
const [end] = await ended(pool, [id])
export const told: unknown = [end?.result, uniqueKey({ a: 1 }), json('1.10')]

export async function buy(db: Database) {
  try {
    await charge.add(db, { purchase: 1 })
  } catch (error) {
    if (error instanceof ClaimLost || error instanceof PulseError) console.log(error.hint)
    if (error instanceof PayloadRefused) console.log(error.issues[0]?.message)
    if (error instanceof JobCancelled) console.log(error.reason === 'timeout')
  }
}
declare const knex: { raw(text: string, values: any): any }
declare const prisma: { $queryRawUnsafe(text: string, ...values: any[]): Promise<any> }
await buy(fromKnex(knex))
await buy(fromPrisma(prisma))

const helper = async (job: Job): Promise<void> => { job.checkpoint(job.attempt) }
const all: Task[] = [receipt, charge, mail, book, task('plain', async (_, job) => helper(job))]
export const test = rolledBack(pool, async ({ db, runJobs: run, travel }) => {
  const attempts = await run(all)
  await travel('1 hour')
  attempts.concat(await runJobs(db, [charge], { max: 10 })).map((each) => each.logs[0]?.text)
})
console.log(await checkVersion(client))
const { tasks, end: close } = await readTasks('jobs')
await work([...all, ...tasks], { takes: 20, name: 'shop', grace: 1000, connection: { port: 5432 } })
await close()
