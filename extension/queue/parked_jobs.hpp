// The parked jobs of a queue, of which promotion opens the lowest ones.
#pragma once

#include "access/index_lookup.hpp"
#include "access/ordered_scan.hpp"
#include "job/job_table.hpp"
#include "queue/fair_ring.hpp"
#include "queue/places.hpp"
#include "queue/promote.hpp"

namespace pulse {

// Reads an index of pulse.job under a snapshot that shows what this transaction wrote.
struct JobScan {
  Relation job;
  Snapshot snapshot;
  IndexLookup rows;
};

// How many more jobs may be promoted, and what remains.
struct PromotionBudget : Promotion {
  int room;
  LevelCounts counts;
  JobTable table;  // once it is open; each promotion renews its snapshot
  JobScan names;   // of queues, once it is open
  int pauses;      // that it may make for rings which other claims walk
  FairTurn* turn;  // in which a queue is promoted, if any
  bool lets_join;  // without room, queues of fair levels still join their rings
  // Level groups of the levels that blocked a queue, and whether a lock was busy, since the last
  // reset.
  uint64 blocking_groups;
  bool met_lock;
};

void open_job_scan(JobScan* scan, Oid Catalog::*index, int keys);
void close_job_scan(JobScan* scan);

// One step of a skip scan over the parked index: finds the first queue after (slot, name).
bool next_queue(IndexLookup* parked, int* slot, Datum* name, bool same_slot);

// The promotion leaves something to start in this queue: its mark comes back, or its turn.
// `is_busy`: because of another transaction.
void come_back(PromotionBudget* budget, int slot, bool is_busy);

// Opens what the queue has places for: the lowest ones, but in a strict queue one that keeps its
// place. True when a due job is left behind.
bool open_waiting(JobTable* table, Queue* queue, PromotionBudget* budget);

// Opens a parked job. False when another transaction has locked or changed it.
bool open_job(JobTable* table, const ItemPointerData& tid);

// What a promotion would do: the ids of the jobs that it opens, and of the open ones that it parks
// for them. It goes no further than the wanted job.
struct Foresight {
  Relation job;
  Snapshot snapshot;
  int64 wanted;
  ArrayBuildState* opened;
  ArrayBuildState* parked;
};

// As open_waiting(), without locks and changes.
void foresee_opening(Queue* queue, Foresight* foresight);

// True when a promotion would open a job of a queue that has places; `due` tells of any due one.
bool would_open(Relation job, Snapshot snapshot, const Queue& queue, bool* due);

}  // namespace pulse
