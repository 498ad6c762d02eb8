import testing from './testing.js'

export const { rolledBack, runJobs } = testing
