// Queues: the places of a queue, and the jobs that use a place.
//
// Invariants:
// - A queue has at most `concurrency` jobs that are open, placed or running. Only a promotion gives
//   a place away, under the queue's advisory lock (LockKind::kQueue, exclusive), and counts under a
//   snapshot younger than the lock.
// - The claim that placed a job claims or opens it before the claim ends. The placed jobs are in
//   the claim's own memory; the queue's lock guards their places until the commit.
#pragma once

#include "access/ordered_scan.hpp"
#include "limit/admission.hpp"
#include "queue/remembered_queue.hpp"
#include "server/postgres.hpp"

namespace pulse {

// Values of pulse.job.succession. The lower value comes first.
constexpr int kClaimedSuccession = 1;  // has been claimed and waits again
constexpr int kNoSuccession = PG_INT16_MAX;

struct OpenJob : JobOrder {
  ItemPointerData tid;
  int succession;  // in a strict queue
};

struct Queue {
  Datum name;
  int bucket;
  int concurrency;  // the setting, or fewer where the levels of the queue have fewer places left
  bool strict;
  int taken;      // jobs that use a place of the queue: open, placed or running
  OpenJob* open;  // the open jobs that no claim has taken, best first
  int open_count;
  int open_capacity;
  bool is_level_bound;    // the levels have fewer places left than the queue's own concurrency
  bool is_recalled;       // `known` was remembered of an earlier promotion
  RememberedQueue known;  // `ids` are the jobs with a place
};

// A parked job with a place of its queue. The claim that gave the place claims or opens the job
// before it ends. So the row changes once instead of twice.
struct PlacedJob : JobOrder {
  ItemPointerData tid;
  Datum identifier;
  Datum queue_name;
  int bucket;
  // Another promotion of the queue has met the job since, and may have left a better job behind.
  bool was_met;
};
constexpr int kMaxPlaced = 64;

// The placed jobs of one claim, in order. Every count of places includes these jobs.
struct PlacedJobs {
  void* claim;
  // Whether the claim may claim the job of this row; the claim fills in both fields.
  bool (*may_claim)(void* claim, TupleTableSlot* row);
  PlacedJob job[kMaxPlaced];
  int count;
};

// Places the parked job, if the promoting claim may claim it. False: the caller opens it. Requires
// the queue's lock.
bool try_place(PlacedJobs* placed, TupleTableSlot* parked, Datum queue_name, int bucket);
// Whether the claim has placed the job with this id.
bool is_placed(const PlacedJobs* placed, int64 id);
// The places of the placed jobs, for the counts of levels. `placed` may be null.
UnshownPlaces unshown_places(PlacedJobs* placed);

// pulse.job.succession of a row; kNoSuccession where the column is NULL.
int succession_of(TupleTableSlot* row);

// Counts a job that uses a place of the queue from now on.
void give_place(Queue* queue, int64 id);

// Reads the jobs with a place of an admitted queue. The queue has no more places left than its
// levels. `recalls`: the caller holds the queue's lock, so the memory of the queue may serve.
// `placed` may be null.
Queue find_places(const Admission& admission, Relation job, Snapshot snapshot, PlacedJobs* placed,
                  bool recalls);

// Whether the levels alone keep the queue from more places.
bool lacks_places(const Queue& queue);

}  // namespace pulse
