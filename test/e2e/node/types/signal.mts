// Compiled without the DOM and without @types/node, too: the signal of a job has its members there.
import { JobCancelled, task } from 'pg-pulse'

export const page = task('page', (_: object, { signal }) => {
  signal.addEventListener('abort', () => {}, { once: true })
  if (signal.reason instanceof JobCancelled) signal.throwIfAborted()
  // @ts-expect-error: no such member
  return signal.isAborted ?? signal.aborted
})
