#!/usr/bin/env node
// Greets, ten jobs at a time: pulse-worker --process 'greet=worker/examples/process.mjs'
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

async function greet({ name, after = 0 }, signal, report) {
  if (!name) throw Object.assign(new Error('nobody to greet'), { retry: false });
  report({ message: `waiting for ${name}`, progress: 0 });
  await sleep(after, null, { signal });
  return { greeted: name };
}

const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const running = new Map();

// The text of an id: JavaScript would round numbers beyond 2^53.
async function run({ id_text: id, payload }) {
  const stop = new AbortController();
  running.set(id, stop);
  try {
    say({ id, result: await greet(payload, stop.signal, (progress) => say({ id, ...progress })) });
  } catch (error) {
    say({ id, error: String(error), retry: error.retry ?? true });
  }
  running.delete(id);
}

say({ takes: 10 });
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if ('cancel' in message) running.get(message.id_text)?.abort();
  else run(message);
}
