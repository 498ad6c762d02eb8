// The places of a queue, and the jobs that have them.
#pragma once

#include "access/index_lookup.hpp"
#include "access/ordered_scan.hpp"
#include "queue/levels.hpp"
#include "queue/remembered_queue.hpp"
#include "server/postgres.hpp"

namespace pulse {

struct Claim;

// Values of pulse.job.queue_turn. The lower one comes first.
constexpr int kClaimedTurn = 1;  // has been claimed and waits again
constexpr int kNoTurn = PG_INT16_MAX;

struct OpenJob : JobOrder {
  ItemPointerData tid;
  int turn;  // in a strict queue
};

struct Queue {
  Datum name;
  int slot;
  int concurrency;  // or less, where its levels have less room
  bool paused;      // or a level of it
  bool strict;
  int taken;      // jobs that use a slot of the queue: open or running
  OpenJob* open;  // the open jobs that no claim has taken, best first
  int open_count;
  int open_capacity;
  bool is_level_bound;    // its levels have less room than its own concurrency
  bool is_recalled;       // `known` was remembered of an earlier promotion
  RememberedQueue known;  // its ids are the jobs that were found to have places
};

// A parked job that has a place of its queue. The claim that gave the place claims the job too, or
// opens it, before it ends: one change of the row instead of two.
struct PlacedJob : JobOrder {
  ItemPointerData tid;
  Datum identifier;
  Datum queue_name;
  int slot;
  bool was_met;  // by another promotion of its queue, which may have left a better job
};
constexpr int kMaxPlaced = 64;

// The placed jobs of one claim, in order. Whatever counts places counts them too.
struct PlacedJobs {
  Claim* claim;
  bool (*may_claim)(Claim* claim, TupleTableSlot* row);
  PlacedJob job[kMaxPlaced];
  int count;
};

// Places the parked job, if a claim is promoting that may have it.
bool try_place(LevelCounts* counts, TupleTableSlot* parked, Datum queue_name, int slot);
bool is_placed(const LevelCounts& counts, int64 id);
int placed_within(const LevelCounts& counts, const Level& level);

// A job has a place of the queue from now on.
void give_place(Queue* queue, int64 id);

// The levels have been read.
Queue read_queue(Datum name, int slot, const Levels& levels);

// Reads the open jobs, and leaves the queue no more places than its levels have. False when no job
// of it may be opened.
bool find_places(Queue* queue, Levels* levels, Relation job, Snapshot snapshot,
                 LevelCounts* counts);

// Whether no parked job of any order may be opened, and no level waits to hear of one.
bool is_full(const Queue& queue);

// Whether the parked job may be opened: where all slots are taken, in place of a worse open job.
bool may_open(const Queue& queue, const OrderedScan& parked);

// In a strict queue: finds the parked job that starts before all others, and puts it into `row`.
// The caller closes the lookup in either case.
bool find_turn(IndexLookup* turns, const Queue& queue, Relation job, Snapshot snapshot);

// Whether that job may be opened: where the place is taken, in place of an open job.
bool may_open_turn(const Queue& queue, TupleTableSlot* row);

// Whether a level alone keeps the queue from more places.
bool is_blocked(const Queue& queue, const Levels& levels);

}  // namespace pulse
