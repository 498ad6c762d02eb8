// pg-boss's side of a drain: `create`, `fill JOBS`, `drain BATCH`, which takes jobs of a queue that
// do nothing until none is left, or `work BATCH`, a worker that ends when nothing has come for a
// while. BENCH_PG_BOSS_URL says where.
import { PgBoss } from 'pg-boss'
import { untilIdle } from './idle.mjs'

const QUEUE = 'no_op'
const TOGETHER = 10_000

// Nothing but the queue: what supervises, schedules and archives stays off.
async function start(isNew) {
  const boss = new PgBoss({
    connectionString: process.env.BENCH_PG_BOSS_URL,
    migrate: isNew,
    supervise: false,
    schedule: false
  })
  boss.on('error', (error) => { throw error })
  await boss.start()
  return boss
}

async function fill(boss, jobs) {
  for (let i = 0; i < jobs; i += TOGETHER) {
    const length = Math.min(TOGETHER, jobs - i)
    await boss.insert(QUEUE, Array.from({ length }, (_, n) => ({ data: { id: i + n } })))
  }
}

async function drain(boss, batchSize) {
  for (;;) {
    const jobs = await boss.fetch(QUEUE, { batchSize })
    if (jobs.length === 0) return
    await boss.complete(QUEUE, jobs.map((job) => job.id))
  }
}

// At its best: full batches follow each other at once. With no option set a worker takes one job
// in two seconds.
async function work(boss, batchSize) {
  const best = { batchSize, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 }
  const { seen, idle } = untilIdle()
  await boss.work(QUEUE, best, async () => seen())
  await idle
}

const [verb, number] = process.argv.slice(2)
const boss = await start(verb === 'create')
if (verb === 'create') await boss.createQueue(QUEUE)
if (verb === 'fill') await fill(boss, Number(number))
if (verb === 'drain') await drain(boss, Number(number))
if (verb === 'work') await work(boss, Number(number))
await boss.stop({ graceful: verb === 'work', close: true })
