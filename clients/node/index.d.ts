import type { Database, Unique } from './lib/types'
import type { addJob, AddJobOnceRow, JobRow } from './lib/generated/functions'

export * from './lib/types'
export * from './lib/generated/errors'
export * from './lib/generated/functions'

/** The part of Standard Schema that the library calls (https://standardschema.dev). */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: ReadonlyArray<SchemaIssue> }

export interface SchemaIssue {
  readonly message: string
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined
}

/** How a job that this one has waited for has ended. */
export interface Parent {
  id: string
  key?: string | null
  state: string
  result?: unknown
}

/** The AbortSignal of the DOM or of @types/node; where a program has neither, its main members. */
export type Signal =
  typeof globalThis extends { AbortSignal: { prototype: infer Known } } ? Known : {
    readonly aborted: boolean
    readonly reason: any
    throwIfAborted(): void
    addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void
    removeEventListener(type: 'abort', listener: () => void): void
  }

/** The job that a handler gets. */
export interface Job<Payload = unknown, Result = unknown> {
  readonly id: string
  readonly token: string
  readonly identifier: string
  /** Of several databases the one of the job. */
  readonly database: string | null
  /** From 1. */
  readonly attempt: number
  readonly maxAttempts: number
  readonly crashes: number
  readonly payload: Payload
  /** The payload as the producer has spelled it, with every digit. */
  readonly payloadText: string
  readonly queueName: string | null
  readonly priority: number
  readonly jobKey: string | null
  readonly flags: string[] | null
  readonly createdAt: Date
  readonly runAt: Date
  readonly scheduledFor: Date | null
  readonly lastError: string | null
  readonly recovered: string | null
  readonly lastCheckpoint: any
  readonly lastCheckpointText: string
  readonly parents: Parent[] | null
  readonly traceparent: string | null
  readonly workerId: string
  readonly workerName: string
  /** Aborted when the job is to end; the reason is a JobCancelled. */
  readonly signal: Signal
  /** Reports a fraction from 0 to 1, and what is being done. */
  progress(fraction: number, more?: { message?: string; stage?: string }): void
  /** Stores a value that the next attempt gets as lastCheckpoint. */
  checkpoint(value: unknown): void
  /** Writes a text, as one line, to the log of the worker with this job, as each call of console
   * does. */
  log(text: string, level?: 'debug' | 'info' | 'warning' | 'error'): void
  /** Gives the attempt back: return or throw what comes back. */
  snooze(seconds: number, more?: { checkpoint?: unknown }): any
  /** Ties the client's transaction to this claim. */
  fence(client: Database): Promise<void>
  /** Completes the job in the client's transaction: exactly once in your database. */
  complete(client: Database, result?: Result): Promise<void>
}

export type Handler<Payload = any, Result = any> = (
  payload: Payload, job: Job<Payload, Result>) => Result | Promise<Result>

export interface TaskOptions<Payload> {
  /** So many jobs of this task at once in one program. */
  takes?: number
  /** Of adds without a `unique` of their own. */
  unique?: Unique
  /** Refuses payloads: an attempt with one fails for good. */
  schema?: StandardSchema<any, Payload>
}

/** The options of addJob(). */
export type AddOptions = NonNullable<Parameters<typeof addJob>[3]>

export interface Task<Payload = any, Result = any> {
  readonly identifier: string
  readonly handler: Handler<Payload, Result>
  /** Adds a job of this task in the caller's transaction. */
  add(db: Database, payload: Payload, options?: AddOptions): Promise<JobRow & AddJobOnceRow>
}

/** Defines a task. Of a schema the payload has the type that the schema gives. */
export function task<Payload = any, Result = any>(
  identifier: string, handler: Handler<Payload, Result>, options?: TaskOptions<Payload>,
): Task<Payload, Result>

export interface WorkOptions {
  /** So many jobs at once; 100. */
  takes?: number
  /** For the log, and in the direct mode the name of the worker. */
  name?: string
  /** Of the direct mode: a URL or the settings of pg; without one PGHOST and so on. */
  connection?: string | object
  /** Of the direct mode: so many milliseconds have handlers when the worker leaves; 25,000. */
  grace?: number
}

/** Runs the jobs of these tasks under `pulse-worker --program`, else in the direct mode. */
export function work(tasks: ReadonlyArray<Task<any, any>>, options?: WorkOptions): Promise<void>

/** The tasks of a folder of files in the shape of Graphile Worker; `end` closes their pool. */
export function readTasks(folder: string): Promise<{ tasks: Task[]; end(): Promise<void> }>

/** Rejects where the database has no extension, or one that this library is not made for. */
export function checkVersion(db: Database): Promise<string>

/** A document of JSON as a text, for a payload, result or checkpoint with exact numbers. */
export function json(text: string): unknown

/** The key of `unique`, the same in every library of pg_pulse. */
export function uniqueKey(payload: unknown, by?: string[]): string

/** A transaction of Knex as a client. */
export function fromKnex(transaction: { raw(text: string, values: any): any }): Database

/** A transaction of Prisma, with a driver adapter, as a client. */
export function fromPrisma(transaction: {
  $queryRawUnsafe(text: string, ...values: any[]): Promise<any> }): Database

/** Fails the attempt: for good, not before some seconds, or with the rest of the work. */
export class Failure extends Error {
  constructor(message: string, options?: {
    retry?: boolean; retryIn?: number; payload?: unknown; cause?: unknown })
}

export class PayloadRefused extends Failure {
  readonly issues: ReadonlyArray<SchemaIssue>
}

/** The reason of a job's signal. `lost`: the claim is over, and no answer counts. */
export class JobCancelled extends Error {
  readonly reason: 'cancelled' | 'timeout' | 'stall' | 'unreachable' | 'lost' | 'shutdown'
  readonly graceMs: number
}

/** A value that JSON does not have, or too much of it. */
export class NotJson extends TypeError {}
