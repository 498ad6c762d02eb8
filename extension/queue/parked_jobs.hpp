// The parked jobs of a queue, of which promotion opens the lowest ones.
#pragma once

#include "access/ordered_scan.hpp"
#include "job/job_table.hpp"
#include "queue/places.hpp"
#include "queue/promote.hpp"

namespace pulse {

// How many more jobs may be promoted, and what remains.
struct PromotionBudget : Promotion {
  int room;
  LevelCounts counts;
  // Level groups of the levels that blocked a queue, and whether a lock was busy, since the last
  // reset.
  uint64 blocking_groups;
  bool met_lock;
};

// True when the queue has a due parked job, on which the scan then stands.
bool begin_parked_scan(OrderedScan* parked, Relation job, Snapshot snapshot, const Queue& queue);
void end_parked_scan(OrderedScan* parked);

// Opens what the queue has places for. True when a due job is left behind.
bool open_lowest(JobTable* table, Queue* queue, PromotionBudget* budget);

}  // namespace pulse
