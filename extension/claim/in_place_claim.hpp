// Claims in place: owns the rows of pulse.claim_batch. A claim of many plain jobs changes no
// indexed column of their rows, so each update is HOT. It lists the jobs in rows of
// pulse.claim_batch instead, up to 200 ids a row. Their entries stay in the claim index, and other
// claims skip them. A heartbeat of the worker makes the jobs that still run indexed running jobs,
// as other claims do at once. So only jobs that outlive a heartbeat cost an index entry.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Whether a claim of at most max_jobs claims in place. A few jobs are not worth a row in
// pulse.claim_batch. Without shared memory there are no low-water marks, which skip the entries.
bool claims_stay_in_place(int max_jobs);

// Indexes the worker's running jobs, at most every 10 s in a session. A worker that stays alive by
// its session or by its claims sends no heartbeats, which would index the jobs.
void index_running_now_and_then(int64 worker_id);

// Lists jobs claimed in place, in pulse.claim_batch.
void add_claim_batches(int64 worker_id, int64 token, const int64* job_ids, int count);

// A job that was claimed in place and is completed.
struct InPlaceEnd {
  int64 worker_id;
  int64 token;
  int64 job_id;
};

// Removes completed jobs from their batches. If another transaction has locked a batch, the jobs
// stay in it, which does no harm.
void remove_from_batches(InPlaceEnd* ends, int count);

// Ids of running jobs, in no order.
struct RunningIds {
  int64* elements;
  int count;
  int capacity;
  int max_count;
};

// Compares ids, for qsort.
int compare_ids(const void* a, const void* b);

// At most max_count ids of the running jobs of this worker, or with NULL of all workers.
RunningIds running_ids(const int64* worker_id, int max_count, Relation job, Snapshot snapshot);

// Whether the worker runs a job.
bool has_running_jobs(int64 worker_id, Relation job, Snapshot snapshot);

}  // namespace pulse
