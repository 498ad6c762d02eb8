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

// Opens what the queue has places for: the lowest ones, but in a strict queue one that keeps its
// place. True when a due job is left behind.
bool open_waiting(JobTable* table, Queue* queue, PromotionBudget* budget);

// True when a promotion would open a job of a queue that has places; `due` tells of any due one.
bool would_open(Relation job, Snapshot snapshot, const Queue& queue, bool* due);

}  // namespace pulse
