#!/usr/bin/env node
'use strict'
// pg-pulse FOLDER: runs the task files of a folder, in the shape that Graphile Worker has given
// them, under pulse-worker --program.
const { parseArgs } = require('node:util')
const { readTasks } = require('../lib/folder')
const { work } = require('../lib/work')

const command = 'node_modules/.bin/pg-pulse'
const usage = `usage: pulse-worker --database NAME --program '${command} [--takes N] FOLDER'
Each file NAME.js, NAME.mjs or NAME.cjs of FOLDER exports the function of the task NAME:
  module.exports = async (payload, helpers) => { … }`

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { takes: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  })
  if (values.help || positionals.length !== 1) {
    console[values.help ? 'log' : 'error'](usage)
    process.exitCode = values.help ? 0 : 64
    return
  }
  const [folder] = positionals
  const { tasks, end } = await readTasks(folder)
  const takes = values.takes === undefined ? undefined : Number(values.takes)
  await work(tasks, { takes, name: `pg-pulse ${folder}`, command: `${command} ${folder}` })
  await end()
}

main().catch((error) => {
  console.error(`pg-pulse: ${error.message}`)
  process.exitCode = 78
})
