// Fair levels give their places to their direct members in turn. A ring has, of one level, a bit
// for each queue slot in which a queue may have something to start, and whose turn it is. Queues of
// a slot take their turns in the order of their names, so the ring goes round in the order of the
// index of parked jobs, and a turn costs the same however many queues there are.
//
// A promotion that finds a queue within a fair level lets it join the ring. Turns are taken under
// the lock of the ring, which no claim keeps until it commits: clear the bit, promote the slot's
// queues, set it again if one has more to start. After a start, promotions fill the rings anew.
//
// A round has four passes, over which a member's weight is spread, so that many members of great
// weight do not start all of it at once. In passes 2 to 4 the walk visits only slots of members
// whose weight exceeds 1.
//
// The bit of each ring in `freed_levels` says that it may have something to start. A ring whose
// level is full has none until a place comes free.
#pragma once

#include "queue/levels.hpp"
#include "server/postgres.hpp"

namespace pulse {

constexpr int kFairRings = 16;  // levels with a ring at a time; a further one is not fair
constexpr int kDeepMembers = 32;
constexpr int kNameBytes = 4 * 128 + 1;
constexpr int kPasses = 4;
constexpr int kSlotsOfPart = 16;
constexpr int kParts = kQueueSlots / kSlotsOfPart;

// A member that is a level itself: its queues share its turns, a different one each time. So that
// a turn costs the same however many they are, it knows in which part of the slots they wait.
struct DeepMember {
  uint64 hash;   // of the level's lock; 0: none
  int weight;    // as its last turn has read it
  uint32 pass;   // of its last turn
  int served;    // jobs started in that pass
  int part;      // of the slots, which has the next turn
  int position;  // of that turn among its queues there
  pg_atomic_uint64 waits[kParts / 64];
};

struct FairRing {
  uint64 level;     // queue_identity() of the level; 0: free
  uint64 lock_key;  // of the level's lock
  TimestampTz used_at;
  pg_atomic_uint64 waits[kQueueWords];
  uint64 heavy[kQueueWords];       // slots of members with more weight than 1
  pg_atomic_uint32 blocked_group;  // level group of the level that is full, plus one; 0: none
  pg_atomic_uint64 blocked_frees;  // what that group had counted
  // Whose turn it is; written under the lock of the ring.
  uint32 pass;
  int next_deep;  // these come first in a pass
  int slot;
  int left;               // how many more jobs it may start
  char name[kNameBytes];  // the queue that had the last turn in the slot
  DeepMember deep[kDeepMembers];
};

// A walk along a ring, and the turn of the queue that it has come to.
struct FairTurn {
  FairRing* ring;
  int left;           // how many more jobs the queue may start; kTurnBegins
  bool has_more;      // the queue has more to start
  bool is_dissolved;  // the level is fair no longer
  bool is_blocked;    // the fair level or one above it is full
  bool is_behind;     // another promotion has not committed the queue's turn before
  Level full;         // which one
  DeepMember* deep;   // whose turn it is; null: a queue's
};
constexpr int kTurnBegins = -1;

// Shared memory for that many databases; only in a server that preloads the library.
Size fair_rings_size(int databases);
void create_fair_rings(int databases);
void reset_fair_rings(int database);

// The ring with this number, if it is one of this job table.
FairRing* fair_ring(int number);

// Lets the queues of this slot take turns in the fair level. False when there is no ring for it.
bool join_ring(const Levels& levels, int slot);

// The same for the first level that has a ring; it reads no settings. False also where the ring
// waits for a place.
bool join_known_ring(const Levels& levels, int slot);

// Whether the level's ring waits for a place.
bool is_ring_blocked(const Level& level);

// The level is fair no longer: marks the queues that wait.
void dissolve_ring(FairRing* ring);

// How many jobs the queue may start, whose turn begins.
int begin_turn(const FairTurn& turn, const Levels& levels, int slot);

void begin_pass(FairRing* ring);
bool has_waits(FairRing* ring);

// The member to which the queue of this name belongs, if that is one that the ring counts for.
DeepMember* deep_member_of(FairRing* ring, const text* name);
// The next member of its kind that has a turn in this pass; null: none.
DeepMember* next_deep(FairRing* ring);
bool has_share(const FairRing* ring, const DeepMember& deep);
// Enters the next part of the slots in which a queue of the member waits, and clears its bit.
bool enter_part(FairRing* ring, DeepMember* deep);
void keep_part(DeepMember* deep, int part);
void leave_part(DeepMember* deep);

// Enters the next slot in which a queue waits for its turn in this pass, and clears its bit.
bool enter_slot(FairRing* ring);
void keep_in_ring(FairRing* ring, int slot);
void leave_slot(FairRing* ring);

// The ring waits for a place in that level, unless one came free since.
void block_ring(int number, const Level& level);

// The ring may have something to start.
void announce_ring(int number);
bool is_ring_announced(int number);
bool any_ring_announced();
// Clears the ring's bit in freed_levels, after a walk that found no waiting queue.
void clear_ring_announcement(int number);

// Whether a queue of this slot waits for its turn.
bool waits_in_ring(int slot);

// The next transaction of the look before, if that was a sweep_interval ago; begins the next one.
TransactionId next_look_at_open_jobs();

// Announces the rings that waited for a place which came free.
void unblock_rings();

}  // namespace pulse
