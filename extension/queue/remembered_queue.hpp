// What promotions remember of queues whose dead entries an old snapshot keeps: the jobs that have
// the queue's places, and where its parked jobs begin. Without it each promotion passes all dead
// entries again.
//
// Promotions remember under the queue's lock, after their snapshot. Only a promotion gives a job a
// place, so all jobs that have one later are among the remembered ones, unless that promotion is
// undone. A commit that parks a job lowers the front of its queue, after it is visible. A promotion
// may have missed such a commit, so it remembers nothing if there was one since its snapshot.
//
// Some rows are parked or opened without such a commit: rows written by hand, rows of a prepared
// transaction of which no notes are left (prepared_notes.hpp). So what is remembered expires, and
// reconciling forgets it.
#pragma once

#include "access/ordered_scan.hpp"
#include "server/postgres.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {

constexpr int kRememberedPlaces = 32;

struct RememberedQueue {
  uint64 queue;          // hash that identifies the queue in this job table; 0: none
  TransactionId writer;  // it must have committed; invalid: none had to
  TimestampTz expires;
  JobOrder front;  // no parked job of the queue sorts before it
  int count;
  int64 ids[kRememberedPlaces];  // every job that has a place is among them
};

// Shared memory for that many databases; only in a server that preloads the library.
Size remembered_queues_size(int databases);
void create_remembered_queues(int databases);

// Forgets the queues of a slot that another database takes over.
void reset_remembered_queues(int database);

// Counts the commits that parked jobs of such queues; call it before the snapshot is taken.
uint64 remembered_generation(int slot);

// A hash that identifies the queue or level in this job table.
uint64 queue_identity(Datum name);

// False when nothing is remembered that holds for this transaction. Requires the queue's lock.
bool recall_queue(Datum name, int slot, RememberedQueue* found);

// Requires the queue's lock. `started`: when a promotion began that had recalled nothing; 0: it had
// recalled the queue. `generation` precedes its snapshot.
void remember_queue(Datum name, int slot, uint64 generation, TimestampTz started,
                    RememberedQueue queue);

void forget_queue(Datum name, int slot);

// Lowers the fronts of this database to the jobs that a commit has parked. Cannot fail.
void lower_fronts_to(const FirstParked& parked);

}  // namespace pulse
