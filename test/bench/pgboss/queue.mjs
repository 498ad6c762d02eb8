// pg-boss's side of a drain: `create`, `fill JOBS`, or `drain BATCH`, which takes jobs of a queue
// that do nothing until none is left. BENCH_PG_BOSS_URL says where.
'use strict';

const PgBoss = require('pg-boss');

const QUEUE = 'no_op';
const TOGETHER = 10_000;

// Nothing but the queue: what supervises, schedules and archives stays off.
async function start(create) {
  const boss = new PgBoss({
    connectionString: process.env.BENCH_PG_BOSS_URL,
    max: 1,
    migrate: create,
    supervise: false,
    schedule: false,
  });
  boss.on('error', (error) => {
    throw error;
  });
  await boss.start();
  return boss;
}

async function fill(boss, jobs) {
  for (let i = 0; i < jobs; i += TOGETHER) {
    const length = Math.min(TOGETHER, jobs - i);
    await boss.insert(Array.from({ length }, (_, n) => ({ name: QUEUE, data: { id: i + n } })));
  }
}

async function drain(boss, batchSize) {
  for (;;) {
    const jobs = await boss.fetch(QUEUE, { batchSize, priority: false });
    if (jobs.length === 0) return;
    await boss.complete(QUEUE, jobs.map((job) => job.id));
  }
}

async function main() {
  const [verb, number] = process.argv.slice(2);
  const boss = await start(verb === 'create');
  if (verb === 'create') await boss.createQueue(QUEUE);
  if (verb === 'fill') await fill(boss, Number(number));
  if (verb === 'drain') await drain(boss, Number(number));
  await boss.stop({ graceful: false, wait: false });
}

main();
