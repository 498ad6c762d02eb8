import type { Database, Task } from './index'

/** One attempt that runJobs() has run. */
export interface Attempt {
  id: string
  task: string
  attempt: number
  payload: any
  /** The state of the job after the attempt: completed, ready, failed, snoozed … */
  state: string
  result?: any
  error?: string
  logs: { level: string; text: string }[]
}

/** A client, and a pool, whose transactions are savepoints of the test's transaction. */
export interface TestDatabase extends Database {
  connect(): Promise<TestDatabase>
  release(): void
  end(): Promise<void>
}

export interface Test {
  t: any
  db: TestDatabase
  runJobs(tasks: ReadonlyArray<Task>, options?: { max?: number }): Promise<Attempt[]>
  travel(howFar: string): Promise<unknown>
}

/** A test of node:test in a transaction that is rolled back. */
export function rolledBack(
  pool: { connect(): Promise<any> }, test: (test: Test) => Promise<void>): (t: any) => Promise<void>

/** Runs the due jobs of these tasks in the caller's transaction until none is due. */
export function runJobs(
  db: Database, tasks: ReadonlyArray<Task>, options?: { max?: number }): Promise<Attempt[]>
