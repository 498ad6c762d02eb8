'use strict'
// pg-pulse: adds jobs of pg_pulse in your transactions, and runs them in this program.
const { calls, checkVersion } = require('./lib/calls')
const { errors } = require('./lib/errors')
const { json, NotJson } = require('./lib/json')
const { JobCancelled } = require('./lib/job')
const { fromKnex } = require('./lib/knex')
const { fromPrisma } = require('./lib/prisma')
const { readTasks } = require('./lib/folder')
const { task, Failure, PayloadRefused } = require('./lib/task')
const { uniqueKey } = require('./lib/unique')
const { work } = require('./lib/work')

module.exports = {
  ...calls, ...errors, checkVersion, json, NotJson, JobCancelled, fromKnex, fromPrisma,
  readTasks, task, Failure, PayloadRefused, uniqueKey, work,
}
