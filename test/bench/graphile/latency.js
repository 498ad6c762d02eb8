// latency.js [SAMPLES]: from the call of addJob to the start of its task, one at a time, as
// Graphile Worker's own latency test counts: the next is added when the last has started. Prints
// each in milliseconds.
const WARM = 20;

async function main() {
  const { run } = await import("graphile-worker");
  let started = () => {};
  const runner = await run({
    connectionString: process.env.BENCH_GRAPHILE_URL,
    concurrency: 1,
    taskList: { latency: () => started(process.hrtime.bigint()) },
  });
  const samples = Number(process.argv[2] || 1000);
  for (let i = 0; i < WARM + samples; i++) {
    const start = new Promise((resolve) => (started = resolve));
    const called = process.hrtime.bigint();
    await runner.addJob("latency", { i });
    const ms = Number((await start) - called) / 1e6;
    if (i >= WARM) console.log(ms.toFixed(4));
  }
  await runner.stop();
}

main();
