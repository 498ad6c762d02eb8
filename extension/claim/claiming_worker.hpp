// Claiming: the worker of a claim, with the tasks that it serves and the state in its heartbeat
// row.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct ClaimingWorker {
  int64 worker_id;
  Datum* tasks;  // the tasks that the worker serves; NULL when task_count is kEveryTask
  int task_count;
  uint64 task_bits;
  uint64 wake_group;  // hash of the set of tasks
  bool draining;      // the worker drains or stops, so the worker gets no job
  bool must_beat;     // claim_beat_is_due()
  // The poison suspect that the worker runs isolated or is reserved for; 0: none.
  int64 isolated_job_id;
};

constexpr int kEveryTask = -1;

// Reads the status of the worker, under a lock that keeps sweeps from declaring it lost until the
// transaction ends. Raises PU002 for a worker that is unknown, lost or stopped.
void admit_worker(ClaimingWorker* worker, int64 worker_id);

// Writes a heartbeat if the claim must. Comes last in a claim: the worker's heartbeats then wait
// for the claim to commit, and the first claim after a start checks all queues.
void beat_for_claim(const ClaimingWorker& worker);

// Sets the tasks to the given array, or with NULL to the registered tasks.
void choose_tasks(ClaimingWorker* worker, ArrayType* given);

// Whether the status of the worker is alive. A reservation counts only while the reserved worker is
// alive.
bool worker_is_alive(int64 worker_id, Snapshot snapshot);

// The poison suspect that the worker runs isolated or is reserved for; 0: none.
int64 isolated_job_of(int64 worker_id, Snapshot snapshot);

// Records the poison suspect that the worker is to run isolated; 0 clears the record.
void set_isolated_job(int64 worker_id, int64 job_id);

}  // namespace pulse
