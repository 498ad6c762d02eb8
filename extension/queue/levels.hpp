// Levels of queues: what a level allows to itself and all within it together. A promotion shares
// the locks of levels, and holds alone a level with a total, and one with a rate and no credit.
#pragma once

#include "queue/level_settings.hpp"
#include "queue/rate.hpp"
#include "server/postgres.hpp"
#include "server/queue_name.hpp"

namespace pulse {

struct Level {
  Datum name;
  uint64 hash;
  bool paused;
  bool fair;     // its direct members take turns
  int weight;    // how many jobs it may start at its own turn
  int total;     // how many jobs may be open or running; kUnlimited
  uint64 frees;  // how often places came free in its group, before its jobs were counted
  int64 taken;   // at least as many jobs as are open or running
  Rate rate;
  RateLook look;
  LOCKMODE held;
};

struct Levels {
  int count;
  Level level[kMaxLevels];  // root first; the last one is the queue itself
  int concurrency;          // of the queue itself
  bool strict;              // the queue itself
  bool paused_by_end;       // a job's end has paused the queue, which is strict
  bool is_limited;          // a level has a total or a rate
  bool has_changed;         // tokens of the queue's own rate, for which it keeps the locks
  int fair;                 // the first level that is fair; -1: none
  int room;                 // how many more jobs the levels let it open
  int blocker;              // the level that has the least room; -1: none
  bool holds_queue;         // the queue's own lock
  bool awaits_turn;         // in a fair level
  bool only_swaps;  // the fair level is full: a better job may take the place of an open one
};

struct PlacedJobs;

// The jobs and tokens of levels that this call has counted.
struct LevelCounts {
  KnownLevel* known;
  PlacedJobs* placed;  // whose rows do not tell of their places; null: none
};

// Names the levels of a queue. Precedes the snapshot under which they are read.
Levels levels_of(Datum queue_name);

// Tries the locks of the levels above the queue, root first.
bool try_lock_levels(Levels* levels);

bool try_lock_queue(Levels* levels);

// Tries to hold the limited levels exclusively. A later snapshot must be used after it.
bool try_lock_limited_levels(Levels* levels);

// Takes tokens for all places of the queue from the credits of its limited levels. False when one
// of them has too few: then they must be held exclusively.
bool take_credits(Levels* levels);

// Gives back the locks of queue and levels, but for those of limited levels above the queue: what
// was counted there serves the next queue.
void unlock_levels(Levels* levels, LevelCounts* counts);

// Reads the settings.
void read_levels(Levels* levels, Snapshot snapshot);

// Finds the tokens of a level with a rate. They stay right while its lock is held.
void find_look(Level* level, Relation job, Snapshot snapshot, LevelCounts* counts);

// Counts the jobs of limited levels, and finds the room that is left.
void find_room(Levels* levels, Relation job, Snapshot snapshot, LevelCounts* counts);

// The promotion has opened so many more jobs than it has parked.
void count_opened(Levels* levels, int opened, LevelCounts* counts);

// Lets a queue wait for the level that blocks it. Marks it instead where a place came free since.
void wait_for_level(const Levels& levels, int slot);

// True when tokens leave the level less room than its total.
bool is_dry(const Level& level);

// When the level has a token for one job more, on the wall clock; 0: now, or not before a claim.
TimestampTz dry_until(const Level& level);

// If the level is dry, wakes promotions when it has a token again.
void set_dry_timer(const Level& level);

// Lets go the queues that wait for a level which has a token by now.
void free_dry_levels(DatabaseState* database, TimestampTz now);

// A walk over the slots whose queues wait for the levels of a group: each once, in turn.
struct WaitWalk {
  int group;
  int position;
  int end;
};
WaitWalk begin_wait_walk(int group);
// Takes the next one; false when there is none.
bool take_wait(WaitWalk* walk, int* slot);
// No queue waits in the group, as far as this walk has seen.
void end_wait_walk(int group);
// Leaves it waiting after all.
void put_wait_back(const WaitWalk& walk, int slot);

// True when queues wait for one level only: one that it blocks again tells of all of them.
bool waits_for_one_level(int group);

}  // namespace pulse
