// Queues: the walk over the parked jobs of a queue, lowest in order first, or in a strict queue the
// successor alone. One walk serves promotions, forecasts, and the question whether a promotion
// would open a job.
#pragma once

#include "job/table.hpp"
#include "queue/places.hpp"

namespace pulse {

// What became of a parked job that the walk has met.
enum class Step {
  kOpened,
  kSwapped,  // the job takes the place of the queue's worst open job
  kLocked,   // a claim or an operator has locked the row
  kEnded     // the walk ends, and leaves the job
};

// A walk over the parked jobs that a promotion may open.
struct ParkedWalk {
  Relation job;
  Snapshot snapshot;
  PlacedJobs* placed;  // jobs to pass, of the claim that promotes; null: none
  Step (*meet)(ParkedWalk* walk, Queue* queue, TupleTableSlot* parked);
  bool is_busy;  // another transaction keeps the promotion from a job
};

// Meets the parked jobs as long as the queue may open a job. True when the walk leaves a due job.
bool walk_parked(Queue* queue, ParkedWalk* walk);

// Opens the jobs.
struct OpeningWalk : ParkedWalk {
  JobTable* table;
  int starts_left;  // how many more jobs may be opened, placed or swapped
  bool has_more;    // the queue has a job to start beyond `starts_left`
};
OpeningWalk opening_walk(JobTable* table, PlacedJobs* placed, int starts_left);

// Opens a parked job. False when another transaction has locked or changed the row.
bool open_job(JobTable* table, const ItemPointerData& tid);

// Foresees the ids of the parked jobs to open, and of the open jobs to park in exchange, without
// locks and without changes. The forecast ends at the job `wanted`.
struct Foresight : ParkedWalk {
  int64 wanted;
  ArrayBuildState* opened;
  ArrayBuildState* parked;
};
Foresight foreseeing_walk(Relation job, Snapshot snapshot, int64 wanted);

// True when a promotion would open a job of a queue with places left. `due`: the queue has a due
// parked job.
bool would_open(Relation job, Snapshot snapshot, Queue* queue, bool* due);

}  // namespace pulse
