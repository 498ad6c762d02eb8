// Remembered queues: owns the memory of promotions about queues with many dead entries, which an
// old snapshot keeps in the index. Remembered are the jobs with a place of the queue, and where the
// queue's parked jobs begin. Without this memory each promotion passes all dead entries again.
//
// Invariants:
// - Promotions write under the queue's advisory lock (LockKind::kQueue) and the spinlock of the
//   group, after their snapshot. Only a promotion gives a job a place. So every job with a place
//   is among the remembered jobs, unless the promotion is undone.
// - No parked job sorts before `front`. A commit that parks a job lowers the front of the job's
//   queue, after the commit is visible. A promotion may have missed such a commit, so a promotion
//   remembers nothing if the generation moved since its snapshot.
// - Some rows are parked or opened without such a commit: rows written by hand, and rows of a
//   prepared transaction without notes (prepared_notes.hpp). So a memory expires, and reconciling
//   forgets the queue.
#pragma once

#include "access/ordered_scan.hpp"
#include "server/postgres.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {

constexpr int kRememberedPlaces = 32;

// Guard: the lock of the group (ParkedGroup::lock).
struct RememberedQueue {
  uint64 queue;          // hash that identifies the queue in this job table; 0: none
  TransactionId writer;  // must have committed; invalid: no transaction must have
  TimestampTz expires;
  JobOrder front;  // no parked job of the queue sorts before the front
  int count;
  int64 ids[kRememberedPlaces];  // every job with a place is among these ids
};

// Size of the memory of so many databases, in bytes. Only a server that preloads the library
// remembers.
Size remembered_queues_size(int databases);
void create_remembered_queues(int databases);

// Forgets the queues of a database entry that another database takes over.
void reset_remembered_queues(int database);

// The number of commits that parked jobs of queues in this group. Call this function before taking
// the snapshot.
uint64 remembered_generation(int bucket);

// False when no memory of the queue holds for this transaction. Requires the queue's lock.
bool recall_queue(Datum name, int bucket, RememberedQueue* found);

// Writes the memory of a queue. Requires the queue's lock. `started`: when the promotion began, if
// the promotion had no memory of the queue to start from; else 0. `generation` precedes the
// promotion's snapshot.
void remember_queue(Datum name, int bucket, uint64 generation, TimestampTz started,
                    RememberedQueue queue);

// Drops the memory of a queue.
void forget_queue(Datum name, int bucket);

// Lowers the fronts of this database to the jobs that a commit has parked. Cannot fail.
void lower_fronts_to(const FirstParked& parked);

}  // namespace pulse
