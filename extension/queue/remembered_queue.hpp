// Remembered queues: owns the memory of promotions about queues with many dead entries, which an
// old snapshot keeps in the index. Promotions remember the jobs with a place of the queue, and
// where its parked jobs begin. Without this memory each promotion passes all dead entries again.
//
// Invariants:
// - Promotions write under the queue's advisory lock (LockKind::kQueue) and the spinlock of the
//   group, after their snapshot. Only a promotion gives a job a place. So every job with a place
//   is among the remembered jobs, unless the promotion is undone.
// - No parked job sorts before `front` (shared/front.hpp). A promotion remembers nothing if the
//   generation moved since its snapshot. Reconciling forgets the queue.
#pragma once

#include "access/ordered_scan.hpp"
#include "server/postgres.hpp"
#include "shared/front.hpp"

namespace pulse {

constexpr int kRememberedPlaces = 32;
// The count of a queue that is not to be remembered: after a swap, or with few dead entries.
constexpr int kDoNotRemember = PG_INT32_MAX;

// Guard: FrontBucket::lock of the group.
struct RememberedQueue {
  uint64 queue;          // queue_identity(); 0: none
  TransactionId writer;  // must have committed; invalid: no transaction must have
  TimestampTz expires;
  JobOrder front;  // no parked job of the queue sorts before the front
  int count;
  int64 ids[kRememberedPlaces];  // every job with a place is among these ids
};

// Size of the memory, in bytes. Only a server that preloads the library remembers.
Size remembered_queues_size();
void create_remembered_queues();

// Forgets the queues of a database entry that another database takes over.
void reset_remembered_queues(int database);

// The number of commits that parked jobs of queues in this group. Call this function before taking
// the snapshot.
uint64 remembered_generation(int bucket);

// Reads the memory of `known->queue`. False when no memory holds for this transaction. Requires the
// queue's lock, which has the key `hash`.
bool recall_queue(uint64 hash, RememberedQueue* known);

// Writes or drops the memory of a queue. Requires the queue's lock, which has the key `hash`.
// `started`: when the promotion began, if it had no memory of the queue to start from; else 0.
// `generation` precedes the promotion's snapshot.
void remember_queue(uint64 hash, uint64 generation, TimestampTz started, RememberedQueue queue);

// Drops the memory of a queue.
void forget_queue(Datum name);

// Lowers the fronts of this database to the jobs that a commit has parked. Cannot fail.
void lower_fronts_to(const FirstParked& parked);

}  // namespace pulse
