// Queues: the walk over the parked jobs of a queue, of which promotion opens the lowest in order.
#pragma once

#include "access/index_lookup.hpp"
#include "access/ordered_scan.hpp"
#include "job/table.hpp"
#include "queue/places.hpp"

namespace pulse {

// The opening of parked jobs of one queue: what the promotion may do, and what is left to do.
struct QueueOpening {
  JobTable* table;
  PlacedJobs* placed;  // null: no claim promotes
  int starts_left;     // how many more jobs may be opened, placed or swapped
  bool has_more;       // the queue has a job to start beyond `starts_left`
  bool is_busy;        // another transaction kept the promotion from a job
};

// Opens as many parked jobs as the queue has places left: the lowest in order, or in a strict queue
// the successor. True when the promotion leaves a due job behind.
bool open_waiting(Queue* queue, QueueOpening* opening);

// Opens a parked job. False when another transaction has locked or changed the row.
bool open_job(JobTable* table, const ItemPointerData& tid);

// The forecast of a promotion: the ids of the parked jobs to open, and of the open jobs to park in
// exchange. The forecast ends at the job `wanted`.
struct Foresight {
  Relation job;
  Snapshot snapshot;
  int64 wanted;
  ArrayBuildState* opened;
  ArrayBuildState* parked;
};

// As open_waiting(), without locks and without changes.
void foresee_opening(Queue* queue, Foresight* foresight);

// True when a promotion would open a job of a queue with places left. `due`: the queue has a due
// parked job.
bool would_open(Relation job, Snapshot snapshot, const Queue& queue, bool* due);

}  // namespace pulse
