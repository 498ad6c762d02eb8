// The worker on whose behalf a claim runs: what it serves, and what its heartbeat row says of it.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct ClaimingWorker {
  int64 worker_id;
  Datum* tasks;  // what it serves; NULL with no_tasks = -1: every task
  int task_count;
  uint64 task_bits;
  uint64 wake_group;      // names the set of tasks
  bool draining;          // drain or stop was asked for: it gets nothing more
  int64 isolated_job_id;  // 0: none; else the poison suspect it runs alone or is kept free for
};

constexpr int kEveryTask = -1;

// Keeps anybody from declaring this worker lost until the transaction ends, then reads its status.
// Raises PU002 for a worker that is unknown, lost or stopped. Counts as a beat where the call is
// its own transaction and the last beat is older than half the interval.
void admit_worker(ClaimingWorker* worker, int64 worker_id);

// What this worker serves: the tasks given, or else the registered ones.
void choose_tasks(ClaimingWorker* worker, ArrayType* given);

// Whether this worker is not known as ended: the owner of a reservation must be alive.
bool worker_is_alive(int64 worker_id, Snapshot snapshot);

// Whether a running job belongs to this worker.
bool holds_jobs(int64 worker_id, Relation job, Snapshot snapshot);

// The poison suspect that this worker runs alone or is kept free for; 0: none.
int64 alone_job_of(int64 worker_id, Snapshot snapshot);

// Remembers, or with 0 forgets, the poison suspect that this worker is to run alone.
void set_isolated_job(int64 worker_id, int64 job_id);

}  // namespace pulse
