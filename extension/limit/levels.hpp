// Limits: levels of queues, and the places that a level allows to itself and to all queues within
// the level together. Owns the locks of levels and the level groups in shared memory.
//
// Invariants:
// - A promotion shares the lock of each level above its queue (LockKind::kLevel). It holds alone a
//   level with a total, and a level with a rate and no credit.
// - A level with a total has at most `total` open, placed and running jobs. Only a promotion that
//   holds the level alone gives a place away, and counts under a snapshot younger than the lock.
// - A queue that a level keeps from a due job has a bit in the level's group, or a queue mark. The
//   bits and the count of freed places are atomics: a promotion sets the bit and then reads the
//   count, a commit counts and then reads the bits.
#pragma once

#include "limit/level_settings.hpp"
#include "limit/rate.hpp"
#include "server/postgres.hpp"
#include "shared/memory.hpp"
#include "shared/queue_name.hpp"

namespace pulse {

struct Level {
  Datum name;
  uint64 hash;
  uint64 identity;  // queue_identity()
  bool paused;
  bool fair;  // the queues beneath the level take turns, unless a level above is fair
  int total;  // how many jobs may be open or running; kUnlimited
  // How often the level's group had counted freed places, before the level's jobs were counted.
  uint64 frees;
  Rate rate;
  int64 credit;       // tokens taken from the level's credit for this queue
  KnownLevel* known;  // the counts of the level; null: the promotion needed no counts
  // The mode of the level's advisory lock.
  LOCKMODE held;
};

struct Levels {
  int count;
  Level level[kMaxLevels];  // root first; the last level is the queue itself
  int concurrency;          // of the queue itself
  bool strict;              // the queue itself
  bool paused_by_end;       // the end of a job has paused the queue, if strict
  bool is_limited;          // a level has a total or a rate
  bool has_changed;  // the queue's own rate has used tokens, so the promotion keeps the locks
  int fair;          // index of the first fair level; -1: none
  int weight;        // how many jobs the queue may start at its turn in the fair level
  int places_left;   // how many more jobs of the queue the levels let a promotion open
  int blocker;       // index of the level with the fewest places left; -1: none
  bool holds_queue;  // the queue's own lock
  bool only_swaps;   // the fair level is full: a better job may take the place of an open one
};

// Jobs with a place that their rows do not show yet. The code that gives such places fills the
// struct in (queue/places.cpp).
struct UnshownPlaces {
  void* jobs;  // null: none
  // How many of the jobs are within the level.
  int (*within)(const void* jobs, const Level& level);
};

// The jobs and tokens of levels that one call has counted.
struct LevelCounts {
  KnownLevel* known;
  UnshownPlaces unshown;
};

// How often each level group has counted freed places.
struct FreedPlaces {
  uint64 of_group[kLevelGroups];
};
// The caller takes the snapshot for counting places afterwards.
FreedPlaces freed_places();

// Names the levels of a queue, whose places the caller counts under a snapshot later than `freed`.
Levels levels_of(Datum queue_name, const FreedPlaces& freed = freed_places());

// Tries to share the locks of the levels above the queue, root first, and then to take its own
// lock. False: a lock is busy.
bool try_lock_levels(Levels* levels);

// Tries to hold the limited levels exclusively, and then the caller takes a new snapshot. False: a
// lock is busy.
bool try_lock_limited_levels(Levels* levels);

// Takes tokens for all places of the queue from the credits of its limited levels. False, and no
// token taken, when a limited level has a total, is paused, has too little credit, or is the queue
// itself. Then the promotion must hold the limited levels exclusively.
bool take_credits(Levels* levels);

// Whether the transaction holds the queue's lock and shares the lock of each level above it, or
// holds the level alone. For Assert().
bool holds_locks_of(const Levels& levels);

// Gives back the locks of the queue and its levels. The promotion keeps the locks of limited levels
// above the queue, because their counts serve the next queue.
void unlock_levels(Levels* levels, LevelCounts* counts);

// Reads the settings of all levels.
void read_levels(Levels* levels, Snapshot snapshot);

// Reads the tokens of a level with a rate into `known`. The reading stays right as long as the
// promotion holds the level's lock.
void find_reading(Level* level, Relation job, Snapshot snapshot, LevelCounts* counts);

// Counts the jobs of limited levels, and computes the places left.
void find_places_left(Levels* levels, Relation job, Snapshot snapshot, LevelCounts* counts);

// Adds to the counts the jobs opened by the promotion, less the jobs parked again. Requires the
// locks of the queue and of its levels.
void count_opened(Levels* levels, int opened);

// Lets a queue wait for the level that blocks it. Sets the queue mark where a place came free since
// the count.
void wait_for_level(const Levels& levels, int bucket);

// True when tokens leave the level fewer places than the total.
bool is_dry(const Level& level);

// When the level has a token for one job more, on the wall clock; 0: now, or not before a claim.
TimestampTz dry_until(const Level& level);

// If the level is dry, sets the moment of the next token, at which claims promote again.
void set_dry_timer(const Level& level);

// Frees the queues that wait for a level with a token by now.
void free_dry_levels(DatabaseState* database, TimestampTz now);

// A walk over the queue buckets whose queues wait for the levels of a group, each bucket once.
struct WaitWalk {
  int group;
  int position;
  int end;
};
WaitWalk begin_wait_walk(int group);
// Takes the next queue bucket, and clears its bit. False: no more queue buckets.
bool take_wait(WaitWalk* walk, int* bucket);
// Where the next walk begins. Until this is said, at the queue bucket behind the last one taken.
void begin_next_walk_at(int group, int bucket);
// Clears the group's bit in `waiting_levels`, when no queue waits in the group any more.
void end_wait_walk(int group);
// Sets the bit of the queue bucket again.
void put_wait_back(const WaitWalk& walk, int bucket);

// True when all queues of the group wait for the same level. Where the level blocks a queue again,
// the walk then need not try the queues after it.
bool waits_for_one_level(int group);

}  // namespace pulse
