// The configuration of Graphile Worker's own perfTest (0.17 and later): fetches of 500, completions
// in batches. Concurrency is higher than there (24), because each turn of the event loop then
// completes more jobs in one statement; see ../README.md. A task that does nothing needs no
// connection of its own, so the pool stays below what the server allows.
const concurrentJobs = Number(process.env.BENCH_CONCURRENCY);
const size = Number(process.env.BENCH_LOCAL_QUEUE);
const mostConnections = 20;

const must = {
  connectionString: process.env.BENCH_GRAPHILE_URL,
  taskDirectory: process.env.BENCH_TASKS || `${__dirname}/tasks`,
};
const batched = {
  localQueue: { size, refetchDelay: { durationMs: 10 } },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};
const best = {
  fileExtensions: [".js"],
  gracefulShutdownAbortTimeout: 2500,
  concurrentJobs,
  maxPoolSize: Math.min(concurrentJobs + 1, mostConnections),
};

module.exports = {
  worker: process.env.BENCH_DEFAULTS ? must : { ...must, ...best, ...(size > 1 ? batched : {}) },
};
