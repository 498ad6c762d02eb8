import pulse = require('pg-pulse')
import testing = require('pg-pulse/testing')
export const greet = pulse.task('greet', async ({ name }: { name: string }) => name)
export const run = testing.runJobs
void pulse.work([greet])
