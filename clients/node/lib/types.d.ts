/** An id. The library gives ids as texts, because ids have 64 bits. */
export type Id = string | number | bigint

/** An interval of SQL (`'1 day'`), or seconds. */
export type Interval = string | number

/** Anything with query(text, values): clients and pools of node-postgres, fromKnex(transaction). */
export interface Database {
  query(text: string, values?: any[]): Promise<any>
}

/** An element of addJobs(). */
export interface JobSpec {
  identifier: string
  payload?: unknown
  queueName?: string | null
  runAt?: Date | string | null
  maxAttempts?: number | null
  jobKey?: string | null
  priority?: number | null
  flags?: string[] | null
}

/** An element of addFlow(). `after`: keys of jobs of the flow, and ids of other jobs. */
export interface FlowJob extends JobSpec {
  key?: string
  after?: Id[]
  jobKeyMode?: string | null
  startsWhen?: 'completed' | 'ended' | 'failed'
  startBy?: Date | string | null
}

/** Once in a period: the key is the payload, or the members of the payload that `by` names. */
export interface Unique {
  for: Interval
  by?: string[]
  states?: string[]
}
