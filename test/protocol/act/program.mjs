// The task `act` as a program of the library for Node. See ../README.md.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { Failure, json, task, work } from '../../../clients/node/index.mjs'
import { steps } from './steps.mjs'

const file = process.env.ACT_FILE

async function waitUntil(isOver, seconds, signal) {
  const deadline = Date.now() + seconds * 1000
  while (!isOver() && Date.now() < deadline) {
    signal.throwIfAborted()
    await pause(20)
  }
  // Also of work that was told while it slept, and whose gate is open by now.
  signal.throwIfAborted()
}

// Each step gets its value as the text of the payload, so that no digit is lost.
function deedsOf(job) {
  let result
  const fail = (text, options) => { throw new Failure(text, options) }
  const deeds = {
    write: (value) => fs.appendFileSync(file, `{"job": "${job.id}", "attempt": ${job.attempt}, ` +
      `"checkpoint": ${job.lastCheckpointText}, "wrote": ${value}}\n`),
    wait: (value) => waitUntil(() => false, Number(value), job.signal),
    until: (value) =>
      waitUntil(() => fs.existsSync(`${file}.${JSON.parse(value)}`), 120, job.signal),
    spin: (value) => { for (const end = Date.now() + value * 1000; Date.now() < end;); },
    progress: (value) => job.progress(Number(value)),
    checkpoint: (value) => job.checkpoint(json(value)),
    result: (value) => { result = json(value) },
    add: (value) => spawnSync('psql', ['-XAtq', '-v', 'ON_ERROR_STOP=1', '-v', `payload=${value}`],
      { input: "SELECT FROM pulse.add_job('act', :'payload'::json)" }),
    fail: (value) => fail(JSON.parse(value)),
    fail_for_good: (value) => fail(JSON.parse(value), { retry: false }),
    garble: (value) => fail(Buffer.from(JSON.parse(value), 'hex').toString()),
    rest: (value) => fail('not all was done', { payload: json(value) }),
    snooze: (value) => { throw job.snooze(Number(value)) },
    exit: (value) => process.exit(Number(value)),
    signal: (value) => {
      process.kill(process.pid, `SIG${JSON.parse(value)}`)
      return pause(120_000)
    },
    once: async (value) => {
      try { fs.closeSync(fs.openSync(`${file}.ran.${job.id}`, 'wx')) } catch { return }
      await deeds.all(value)
    },
    all: async (text) => { for (const [kind, value] of steps(text)) await deeds[kind](value) },
  }
  return { all: deeds.all, result: () => result }
}

const act = task('act', async (payload, job) => {
  const { all, result } = deedsOf(job)
  await all(job.payloadText)
  return result()
})
// Under pulse-worker, or without.
await work([act], { takes: 2, name: 'kit', grace: Number(process.env.ACT_GRACE ?? 0) })
