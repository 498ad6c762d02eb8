// Written by test/docs/generate; do not edit.
import { calls } from '../calls.js'

export const {
  addJob, addJobAfter, addFlow, addDependency, addJobs, addJobOnce, forgetOnce, addJobForRequest,
  removeJob, waitForEnd, ended, schedule, unschedule, pauseSchedule, resumeSchedule,
  runScheduleNow, nextRuns, cronRuns, loadCrontab, setTask, unsetTask, setQueue, unsetQueue,
  pauseQueue, resumeQueue, cancelJob, cancelFlow, retryJob, requeueJob, rescheduleJobs,
  completeJobs, permanentlyFailJobs, operationActions, previewOperation, startOperation,
  runOperation, stopOperation, undoOperation, noteOperation, deleteFinished, drainWorker,
  stopWorker, drainWorkers, stopWorkers, forceUnlockWorkers, importGraphileWorker,
} = calls
