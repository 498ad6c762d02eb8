// Runs what is ready with Graphile Worker from the node_modules of the working directory, one job
// at a time, and prints the payload of each. The argument tells in JSON: connection, tasks (each
// "ok", "fail" or "part", which refuses the odd numbers of a list), skip (flags), and during, a
// statement that the first job sends while it runs.
import { pathToFileURL } from 'node:url';

const library = pathToFileURL('node_modules/graphile-worker/dist/index.js');
const { runOnce, Logger } = await import(library);
const { connection, tasks, skip, during } = JSON.parse(process.argv[2]);
let statement = during;

const execute = (outcome) => async (payload, { withPgClient }) => {
  console.log(JSON.stringify(payload));
  if (statement) {
    const first = statement;
    statement = undefined;
    await withPgClient((client) => client.query(first));
  }
  if (outcome === 'fail') throw new Error('E');
  if (outcome !== 'part') return;
  return payload.map(async (number) => {
    if (number % 2) throw new Error('E');
  });
};

await runOnce({
  connectionString: connection,
  concurrency: 1,
  forbiddenFlags: skip,
  logger: new Logger(() => () => {}),
  taskList: Object.fromEntries(
    Object.entries(tasks).map(([task, outcome]) => [task, execute(outcome)]),
  ),
});
