// Wrong uses, none of which compiles: tsc tells of a comment that expects an error and gets none.
import { addFlow, addJob, addJobs, Failure, task, work } from 'pg-pulse'
import type { Database } from 'pg-pulse'
// @ts-expect-error: the module has no default
import pulse from 'pg-pulse'

declare const client: Database
const receipt = task('receipt', async ({ purchase }: { purchase: number }) => purchase)

// @ts-expect-error: the payload has no such type
await receipt.add(client, { purchase: 'seven' })
// @ts-expect-error: the payload lacks a member
await receipt.add(client, {})
// @ts-expect-error: no client
await receipt.add('shop', { purchase: 7 })
// @ts-expect-error: no such option
await addJob(client, 'receipt', {}, { queue: 'mail' })
// @ts-expect-error: no such type of an option
await addJob(client, 'receipt', {}, { priority: 'high' })
// @ts-expect-error: no period
await addJob(client, 'receipt', {}, { unique: { by: ['purchase'] } })
// @ts-expect-error: no such member of a job
await addJobs(client, [{ identifier: 'receipt', queue: 'mail' }])
// @ts-expect-error: no task
await addFlow(client, [{ key: 'one' }])
// @ts-expect-error: no such condition
await addFlow(client, [{ identifier: 'page', startsWhen: 'done' }])
// @ts-expect-error: no such member
await addJob(client, 'receipt').then((job) => job.run_at)
// @ts-expect-error: an id is a text
const id: number = await addJob(client, 'receipt').then((job) => job.id)
// @ts-expect-error: no handler
task('receipt')
// @ts-expect-error: no such option
task('receipt', () => {}, { concurrency: 4 })
// @ts-expect-error: no such member of a job
task('receipt', (_, job) => job.job_key)
// @ts-expect-error: no such level
task('receipt', (_, job) => job.log('text', 'fatal'))
// @ts-expect-error: the result is of another type
task<object, string>('receipt', async () => 7)
// @ts-expect-error: the id of a running job does not change
task('receipt', (_, job) => { job.id = '7' })
// @ts-expect-error: no number of seconds
export const failure = new Failure('no', { retryIn: '1 hour' })
// @ts-expect-error: a list is wanted
await work(receipt)
// @ts-expect-error: no such option
await work([receipt], { concurrency: 4 })
export { id, pulse }
