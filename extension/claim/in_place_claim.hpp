// Claims in place. A claim of many plain jobs changes no indexed column of their rows, so each is a
// HOT update, and lists the jobs in pulse.claim_batch instead, a row for each 200. They stay on the
// claim index, stepped over, until they end or settle: a beat of their worker moves what still runs
// to the lane of held jobs, as any other update would have done at once. So an index entry is
// written for those jobs only that outlive a heartbeat.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Whether a claim of so many jobs may leave them in place: it must be worth a row of its own, and
// without shared memory nothing would remember where the jobs that can be claimed begin.
bool claims_stay_in_place(int max_jobs);

// Settles what this worker claimed earlier, if this session has not done so for a while: a worker
// that lives by its session or by its claims alone sends no beats.
void index_running_now_and_then(int64 worker_id);

// Lists jobs that were claimed in place.
void add_claim_batches(int64 worker_id, int64 token, const int64* job_ids, int count);

// A job claimed in place that was completed.
struct InPlaceEnd {
  int64 worker_id;
  int64 token;
  int64 job_id;
};

// Takes them off the list. A row that somebody holds keeps them, which does no harm.
void remove_from_batches(InPlaceEnd* ends, int count);

// Ids of running jobs, in no order.
struct RunningIds {
  int64* elements;
  int count;
  int capacity;
  int max_count;
};

// Orders ids, for qsort.
int by_value(const void* a, const void* b);

// At most so many of this worker, or with NULL of all.
RunningIds running_ids(const int64* worker_id, int max_count, Relation job, Snapshot snapshot);

// Whether any job on the list of this worker still runs.
bool has_in_place_jobs(int64 worker_id, Relation job, Snapshot snapshot);

}  // namespace pulse
