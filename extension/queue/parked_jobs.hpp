// Queues: the walk over the parked jobs of a queue, of which promotion opens the lowest in order.
#pragma once

#include "access/index_lookup.hpp"
#include "access/ordered_scan.hpp"
#include "job/scan.hpp"
#include "job/table.hpp"
#include "limit/fair_turn.hpp"
#include "queue/places.hpp"

namespace pulse {

// How many more jobs a call may promote, and the work left over.
struct PromotionBudget : TurnBudget {
  LevelCounts counts;
  JobTable table;  // null until the first promotion; each promotion takes a new snapshot
  JobScan names;   // the names of queues; null until the first promotion
  bool lets_join;  // without places left, queues of fair levels still join their rings
  // Level groups of the levels that blocked a queue, and whether a lock was busy, since the last
  // reset.
  uint64 blocking_groups;
  bool met_lock;
};

// The promotion leaves a job to start in this queue: sets the queue mark again, or keeps the turn.
// `is_busy`: another transaction kept the promotion from the job.
void come_back(PromotionBudget* budget, int bucket, bool is_busy);

// Opens as many parked jobs as the queue has places left: the lowest in order, or in a strict queue
// the job that keeps its place. True when the promotion leaves a due job behind.
bool open_waiting(JobTable* table, Queue* queue, PromotionBudget* budget);

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
