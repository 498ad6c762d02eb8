// Fairness: owns the rings in shared memory, by which the queues beneath a fair level open jobs in
// turn.
//
// A ring serves one level. Its members are the queues beneath the level, however deep, and the
// queue of the level's own name. A ring has a bit for each queue bucket in which a queue may have a
// job to start, and records whose turn comes next. Queues of one queue bucket take turns in the
// order of their names. So a walk follows the order of the index of parked jobs, and a turn costs
// the same however many queues there are.
//
// Once around the ring takes four passes. A queue's weight is spread over the passes, so that many
// queues of great weight do not start all their jobs at once. In passes 2 to 4 the walk visits only
// queue buckets of queues with a weight above 1.
//
// Invariants:
// - A queue with a job to start has its bit in the ring, or its queue mark, or a walk is promoting
//   the queue. A joining promotion sets the bit under the spinlock of the database's rings. A walk
//   clears the bit, promotes the queues of the queue bucket, and sets the bit again if one of them
//   has more. An abort sets the queue marks of the cleared bits.
// - The walk with the advisory lock of the ring (LockKind::kRing, exclusive) alone writes whose
//   turn comes next. No claim keeps this lock until the commit.
// - An idle ring goes to another level under the spinlock: no queue waits in it, and no walk or
//   join has used it for a minute.
// - The bit of each ring in `freed_levels` says that the ring may have a job to start. A ring whose
//   level is full has this bit only after a place may have come free.
#pragma once

#include "limit/levels.hpp"
#include "server/postgres.hpp"

namespace pulse {

constexpr int kFairRings = 16;  // levels with a ring at a time; a further fair level takes no turns
constexpr int kNameBytes = 4 * 128 + 1;
constexpr int kPasses = 4;

struct FairRing {
  // queue_identity() of the level, and the key of the ring's lock; 0: a free ring. Guard:
  // FairRings::lock, for writes. A reader without the lock takes the value as a hint.
  uint64 level;
  // When a walk or a join used the ring. Guard: FairRings::lock, advisory kRing.
  TimestampTz used_at;
  // A bit for each queue bucket in which a queue waits. Guard: atomic.
  pg_atomic_uint64 waits[kQueueWords];
  uint64 heavy[kQueueWords];  // buckets of queues with a weight above 1. Guard: advisory kRing
  // The level group of the full level, plus one; 0: the ring is not blocked. Guard: atomic.
  pg_atomic_uint32 blocked_group;
  pg_atomic_uint64 blocked_frees;  // freed places that `blocked_group` had counted. Guard: atomic
  // Whose turn comes next. Guard: advisory kRing; a join that takes an idle ring writes the fields
  // under FairRings::lock.
  uint32 pass;
  int bucket;
  int left;               // how many more jobs the queue `name` may start
  char name[kNameBytes];  // the queue that had the last turn in the bucket
};

// The rings of one database.
struct FairRings {
  slock_t lock;  // held to join a ring, or to give an idle ring to another level
  // When a sweep last checked open jobs, and the next transaction id at that time. Guard:
  // FairRings::lock.
  TimestampTz checked_at;
  TransactionId checked_before;
  FairRing ring[kFairRings];

  void init();
};

// A walk along a ring, and the turn of the queue that the walk has reached.
struct FairTurn {
  FairRing* ring;
  int left;           // how many more jobs the queue may start; kTurnBegins
  bool has_more;      // the queue has more to start
  bool is_dissolved;  // the level is fair no longer
  bool is_blocked;    // the fair level or a level above the fair level is full
  bool is_behind;     // another promotion has not committed the queue's turn before
  Level full;         // the full level, if is_blocked
};
constexpr int kTurnBegins = -1;

// Size of the rings, in bytes. Only a server that preloads the library has rings.
Size fair_rings_size();
// Called once, by the creator of the shared memory.
void create_fair_rings();
// Frees all rings of a database entry, when another database takes the bucket.
void reset_fair_rings(int database);

// The rings of this database; null: none.
FairRings* rings_here();

// The ring of the level; null: none.
FairRing* ring_of(uint64 identity);

// The ring with this number; null when no level of this database uses the ring.
FairRing* fair_ring(int number);

// Lets the queues of this bucket take turns in the fair level. False when all rings are in use.
bool join_ring(const Levels& levels, int bucket);

// Lets the queues of this bucket take turns in the first level with a ring, and reads no settings.
// False when no level has a ring, and when the ring waits for a place.
bool join_known_ring(const Levels& levels, int bucket);

// Whether the level's ring waits for a place.
bool is_ring_blocked(const Level& level);

// Frees the ring of a level that is fair no longer, and sets the queue marks of its bits.
void dissolve_ring(FairRing* ring);

// How many jobs a queue of this weight may start in the turn that begins.
int begin_turn(const FairTurn& turn, int weight, int bucket);

// Enters the next pass, at the first queue bucket.
void begin_pass(FairRing* ring);
// Whether a queue waits in the ring.
bool has_waits(FairRing* ring);

// Enters the next queue bucket in which a queue waits for a turn in this pass, and clears its bit.
// False: no queue waits for a turn in this pass.
bool enter_bucket(FairRing* ring);
// Sets the bit of the queue bucket again.
void keep_in_ring(FairRing* ring, int bucket);
// The next turn goes to the next queue bucket.
void leave_bucket(FairRing* ring);

// The ring waits for a place of the full level, until unblock_rings() finds a freed place. True: a
// place came free since the count of the level, so the ring is announced.
bool block_ring(int number, const Level& level);

// Sets the ring's bit in freed_levels: the ring may have a job to start.
void announce_ring(int number);
bool is_ring_announced(int number);
bool any_ring_announced();
// Clears the ring's bit in freed_levels, after a walk without a waiting queue. True: a queue has
// joined meanwhile, so the bit is set again.
bool clear_ring_announcement(int number);

// Whether a queue of this bucket waits in an announced ring.
bool waits_in_ring(int bucket);

// Announces the rings for which a place came free.
void unblock_rings();

}  // namespace pulse
