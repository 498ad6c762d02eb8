#!/usr/bin/env node
// Greets and waits, a hundred jobs at a time, and stops a job that is cancelled:
//   pulse-worker --program worker/examples/program.mjs
import { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const handlers = {
  async greet({ name, after = 0 }, { signal, report }) {
    if (!name) throw Object.assign(new Error('nobody to greet'), { retry: false });
    report({ message: `waiting for ${name}`, progress: 0 });
    await sleep(after, null, { signal });
    return { greeted: name };
  },
};

const worker = new Socket({ fd: Number(process.env.PULSE_FD), allowHalfOpen: true });
const say = (message) => worker.write(`${JSON.stringify(message)}\n`);
const running = new Map();

async function run({ id, task, payload }) {
  const stop = new AbortController();
  running.set(id, stop);
  try {
    const report = (progress) => say({ id, ...progress });
    say({ id, result: await handlers[task](payload, { signal: stop.signal, report }) });
  } catch (error) {
    say({ id, error: String(error), retry: error?.retry ?? true });
  }
  running.delete(id);
}

const tasks = Object.fromEntries(Object.keys(handlers).map((task) => [task, {}]));
say({ hello: { protocol: 1, takes: 100, tasks } });
const jobs = [];
for await (const line of createInterface({ input: worker })) {
  const message = JSON.parse(line);
  if ('cancel' in message) running.get(message.cancel)?.abort();
  else jobs.push(run(message));
}
await Promise.all(jobs);
worker.end();
