#!/usr/bin/env node
// worker/examples/beating_worker.mjs, with the steps of `act` in place of its fetch. Beats share
// the thread of the work, and a stop is as a drain.
// without: 1.4 2.5 2.8
import fs from 'node:fs'
import Module, { createRequire } from 'node:module'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { steps } from '../act/steps.mjs'

const here = path.dirname(fs.realpathSync(process.argv[1]))
const file = process.env.PULSE_FILE
const project = fs.mkdtempSync(path.join(path.dirname(file), 'project.'))
process.on('exit', () => fs.rmSync(project, { recursive: true }))
const libraries = ['/usr/share/nodejs', `${process.env.PULSE_BUILD}/node/usr/share/nodejs`]
  .find((folder) => fs.existsSync(`${folder}/pg`))
fs.symlinkSync(libraries, `${project}/node_modules`)
process.env.NODE_PATH = libraries
Module._initPaths()
const pg = createRequire(`${project}/`)('pg')
pg.types.setTypeParser(114, (text) => text) // JSON stays text, so that no digit is lost

async function waitUntil(isOver, seconds, signal) {
  const deadline = Date.now() + seconds * 1000
  while (!isOver() && Date.now() < deadline) {
    if (signal.aborted) throw new Error('told to end')
    await pause(20)
  }
}

// Ends the job itself where the example has no word for the end: then "stale" follows.
globalThis.act = async (db, job, { signal }) => {
  const ask = (call, ...values) =>
    db.query(`SELECT * FROM pulse.${call}`, [job.id, job.token, ...values])
  const { rows: [{ attempts, checkpoint }] } = await ask('held_job($1, $2)')
  let result = null
  const fail = async (text, more, ...values) => {
    if (more) await ask(`fail($1, $2, $3, ${more})`, text.replaceAll('\0', ''), ...values)
    throw new Error(text)
  }
  const does = {
    write: (value) => fs.appendFileSync(file, `{"job": "${job.id}", "attempt": ${attempts}, ` +
      `"checkpoint": ${checkpoint}, "wrote": ${value}}\n`),
    wait: (value) => waitUntil(() => false, JSON.parse(value), signal),
    until: (value) => waitUntil(() => fs.existsSync(`${file}.${JSON.parse(value)}`), 120, signal),
    spin: (value) => { for (const end = Date.now() + value * 1000; Date.now() < end;); },
    progress: (value) => ask('progress($1, $2, fraction => $3)', value),
    checkpoint: (value) => ask('progress($1, $2, checkpoint => $3)', value),
    result: (value) => { result = value },
    add: (value) => db.query("SELECT FROM pulse.add_job('act', $1)", [value]),
    fail: (value) => fail(JSON.parse(value)),
    garble: (value) => fail(Buffer.from(JSON.parse(value), 'hex').toString()),
    fail_for_good: (value) => fail(JSON.parse(value), 'false'),
    rest: (value) => fail('not all was done', 'payload => $4', value),
    snooze: async (value) => {
      await ask("snooze($1, $2, $3 * interval '1 s')", value)
      throw new Error('snoozed')
    },
    exit: (value) => process.exit(JSON.parse(value)),
    signal: (value) => process.kill(process.pid, `SIG${JSON.parse(value)}`),
    once: async (value) => {
      try { fs.closeSync(fs.openSync(`${file}.ran.${job.id}`, 'wx')) } catch { return }
      await run(steps(value))
    },
  }
  async function run(steps) { for (const [kind, value] of steps) await does[kind](value) }
  await run(steps(job.payload))
  return { status: result }
}

let text = fs.readFileSync(`${here}/../../../worker/examples/beating_worker.mjs`, 'utf8')
for (const [old, replacement] of [["'{fetch}'", "'{act}'"],
  ['fetch(job.payload?.url, work', 'act(db, job, work']]) {
  if (text.split(old).length !== 2) throw new Error(`the example has ${old} not once`)
  text = text.replace(old, replacement)
}
fs.writeFileSync(`${project}/worker.mjs`, text)
await import(`${project}/worker.mjs`)
