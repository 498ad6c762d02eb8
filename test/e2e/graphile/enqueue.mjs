// A program of an application that uses the library of Graphile Worker to add jobs. The argument is
// the connection; the working directory has the library.
import { pathToFileURL } from 'node:url';

const library = pathToFileURL('node_modules/graphile-worker/dist/index.js');
const { makeWorkerUtils, Logger } = await import(library);

const utils = await makeWorkerUtils({
  connectionString: process.argv[2],
  logger: new Logger(() => () => {}),
});
await utils.addJob('greet', { name: 'ann' }, { jobKey: 'greet:ann', queueName: 'greetings' });
await utils.addJob('greet', { name: 'Ann' }, { jobKey: 'greet:ann', queueName: 'greetings' });
const added = await utils.addJobs([
  { identifier: 'greet', payload: { name: 'bob' }, priority: 5 },
  { identifier: 'greet', payload: { name: 'eve' }, flags: ['night'] },
]);
await utils.completeJobs([added[1].id]);
await utils.release();
