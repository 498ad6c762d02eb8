import pulse from './index.js'

export * from './lib/generated/functions.mjs'
export const {
  Aborted, ClaimLost, ClaimsOff, Failure, InTransaction, JobCancelled, JobMustNotRun,
  JobsWouldBeLost, NoExtension, NotFound, NotGranted, NotJson, OtherVersion, OutOfRange,
  PayloadRefused, PulseError, ReadOnly, SettingsRefused, WorkerUnknown, WrongIsolation,
  checkVersion, fromKnex, fromPrisma, json, readTasks, task, uniqueKey, work,
} = pulse
