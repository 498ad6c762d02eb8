// Shared memory of the backends: waiters, wake-ups and marks. It holds nothing durable: after
// a restart it is empty, and the first claim or sweep rebuilds it from the tables. Every field is
// an atomic, constant, guarded by a spinlock, or belongs to the owner of its waiter.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int kTaskBits = 64;      // number of task bits; a task hashes to one of them
constexpr int kQueueSlots = 8192;  // number of queue marks; a queue hashes to one of them
constexpr int kQueueWords = kQueueSlots / 64;
constexpr int kParentSlots = 4096;  // number of parent marks; a job hashes to one by its id
constexpr int kParentWords = kParentSlots / 64;
constexpr int kMarkWords = kQueueWords + kParentWords;
constexpr int kLevelGroups = 8;  // a limited level of queues hashes to one of them
constexpr uint64 kAllLevelGroups = (UINT64CONST(1) << kLevelGroups) - 1;
constexpr int kMaxWakeGroups = 32;       // wake groups per database
constexpr uint64 kNever = PG_INT64_MAX;  // a due time that never comes

// How a maintainer (maintainer.cpp) ended, for the launcher, or why the launcher can start none. A
// maintainer begins with kDied, so a crash needs no report, and runs well once it is idle.
enum class MaintainerEnd : uint32 {
  kNone,
  kDied,
  kRan,
  kOff,           // sweeps are switched off there
  kNotInstalled,  // the database has no extension
  kBusy,          // another session needs the database or a table alone
  kFailed,        // the maintainer has logged an error
  kUnknown,       // no such database
  kClosed,        // the database accepts no connections
  kNoPlace,       // no shared memory is left for it
  kNoProcess,     // no worker slot is free
};

// State of the background worker in one database. Times are microseconds of the monotonic clock.
struct MaintainerState {
  // The running maintainer: index into ProcGlobal->allProcs, plus one; 0: none.
  pg_atomic_uint32 process;
  // 1: maintainers sweep here, so waiting clients leave sweeps to them at first.
  pg_atomic_uint32 is_serving;
  // MaintainerEnd of the maintainer.
  pg_atomic_uint32 end;
  // When the next maintainer is to start.
  pg_atomic_uint64 next_start;
  // When the last sweep by the interval began; 0: the next maintainer sweeps at once.
  pg_atomic_uint64 last_sweep;
  // When a maintainer last logged a failure, and the SQLSTATE of that failure.
  pg_atomic_uint64 reported_at;
  pg_atomic_uint32 reported_sqlstate;
};

// Sessions with the same claim terms, tasks and excluded flags, so that each can replace any other.
// A commit that woke enough of a group leaves its generation alone.
struct WakeGroup {
  pg_atomic_uint32 users;       // number of sessions; 0: free
  pg_atomic_uint64 wake_group;  // hash of what they claim
  pg_atomic_uint64 tasks;       // task bits of what they claim
  // Incremented by a commit that may have a job for the group and woke too few of it.
  pg_atomic_uint64 generation;
};

// Queues that wait for a place in a level of this group, or for the end of its pause.
struct LevelGroup {
  pg_atomic_uint64 frees;  // incremented by each commit that frees a place in a level of the group
  pg_atomic_uint64 level;  // hash of the only level of which queues wait; kManyLevels: several
  pg_atomic_uint64 dry_until;  // when a rated level of the group has a token again
  pg_atomic_uint32 next_slot;  // whose turn it is
  pg_atomic_uint64 waits[kQueueWords];
};
constexpr uint64 kManyLevels = ~UINT64CONST(0);

// Tokens of a rated level that promotions take without holding it alone (rate_credit.hpp).
struct RateCredit {
  slock_t lock;
  uint64 level;  // hash of its name; 0: none
  int64 tokens;
};
constexpr int kRateCredits = 16;  // a level hashes to one of them

// After a start, and after new settings of the members of a level, claims and sweeps check all
// queues once, from slot 0 on.
enum FirstLook : uint32 { kLookIsDue = 0, kLookBegun = 1, kLookEnded = 2 };

// State of one database. The first backend that needs it takes the slot. It stays taken until a
// restart, or until the extension or the database is dropped.
struct DatabaseState {
  // The database; 0: the slot is free.
  pg_atomic_uint32 oid;
  pg_atomic_uint32 first_look;  // FirstLook
  pg_atomic_uint32 next_slot;   // of the queues, where the next check continues
  pg_atomic_uint32 next_parent_slot;
  // Incremented by a commit that may have a job for the task bit, the wake group, any worker.
  pg_atomic_uint64 generation[kTaskBits];
  slock_t wake_group_lock;  // held to join a group
  WakeGroup wake_groups[kMaxWakeGroups];
  pg_atomic_uint64 any_generation;
  // The earliest known run_at of a future job per task bit, and of a parked future job.
  pg_atomic_uint64 next_due[kTaskBits];
  pg_atomic_uint64 parked_due;
  // Parked jobs due before this time have marked their queue.
  pg_atomic_uint64 parked_seen;
  // When a waiter checks whether the woken ones have claimed; monotonic clock.
  pg_atomic_uint64 wake_check_due;
  // When a sweep is requested, before its interval ends.
  pg_atomic_uint64 sweep_due;
  // One bit per queue slot, set when the queue may be promoted; then one per parent slot, set when
  // a job that waits for one of these parents may start.
  pg_atomic_uint64 marks[kMarkWords];
  // The parent slots of the jobs that wait for a parent and were looked at, and perhaps more.
  pg_atomic_uint64 awaited_parents[kParentWords];
  // Level groups in which queues wait, and those of them in which a place came free. After them,
  // `freed_levels` has a bit for each fair ring that may have something to start.
  pg_atomic_uint64 waiting_levels;
  pg_atomic_uint64 freed_levels;
  pg_atomic_uint64 rated_levels;  // level groups of the levels with a rate, and perhaps more
  LevelGroup level_groups[kLevelGroups];
  RateCredit rate_credits[kRateCredits];
  pg_atomic_uint64 blocked_sweeps;  // in a row, which locks of tables keep from recovery
  MaintainerState maintainer;
};

// A backend that waits, or that was woken and has not claimed since. `word` packs the state, the
// number of further jobs the waiter may be given, and a sequence number. The sequence number makes
// a waker's compare-and-swap fail when another backend took the slot.
enum WaiterState : uint64 { kFree = 0, kTaken = 1, kWaiting = 2, kWoken = 3 };

struct Waiter {
  pg_atomic_uint64 word;
  pg_atomic_uint64 woken_at;  // monotonic clock, in microseconds
  uint32 database;            // from here on: written by the owner while kTaken, then constant
  int32 backend;              // index into ProcGlobal->allProcs
  uint32 capacity;            // number of jobs it starts at once
  uint64 tasks;               // task bits it serves
  uint64 wake_group;  // hash of its claim terms; waiters of one wake group can replace each other
  int64 worker_id;
};

// A session that waits for the end of jobs. Only its owner writes, and then looks at the jobs.
constexpr int kAwaitedIds = 8;
struct EndWaiter {
  pg_atomic_uint32 process;  // the session: index into ProcGlobal->allProcs, plus one; 0: free
  pg_atomic_uint32 database;
  pg_atomic_uint64 ids[kAwaitedIds];  // end_waiters.cpp
};
constexpr int kEndWaiters = 128;  // of all databases; further ones poll

struct SharedState {
  int64 started_at;    // start of this server incarnation: constant after creation
  uint64 incarnation;  // random number of this incarnation: constant after creation
  int32 databases;
  int32 waiters;
  pg_atomic_uint32 launcher;     // the launcher: index into ProcGlobal->allProcs, plus one; 0: none
  pg_atomic_uint32 must_retry;   // 1: the launcher retries databases that it could not serve
  pg_atomic_uint32 may_stay;     // 1: every listed database can keep a maintainer
  pg_atomic_uint32 waiting;      // waiter slots in use; a commit that reads 0 wakes no waiter
  pg_atomic_uint32 end_waiting;  // end waiters in use; a commit that reads 0 looks at none
  EndWaiter end_waiters[kEndWaiters];
  DatabaseState database[FLEXIBLE_ARRAY_MEMBER];
  // followed by Waiter[waiters]
};

constexpr int kPreloadedDatabases = 64;

// Returns a named area of shared memory; the first process that asks creates and initialises it.
using InitArea = void (*)(void* area, Size size);
void* shared_area(const char* name, Size size, InitArea init);

// Allocates the area at run time, from the server's spare memory. NULL when none is left.
void* area_of_slack(const char* name, Size size, InitArea init);

// The size and the creation of this file's area; only for a server that preloads the library.
Size shared_state_size();
void create_shared_state();

// Whether the server preloaded the library, so that every area has its full size.
bool is_preloaded();

// Called with the slot of a dropped database before another database takes it over.
extern void (*on_slot_taken_over)(int slot);

// The shared state, allocated at run time if the library was not preloaded. NULL when no memory is
// left: then workers poll.
SharedState* shared();

// The state of a database. NULL when no slot is left.
DatabaseState* database_state(Oid database);

// The state of this database, or NULL. May raise, so a transaction calls it before its commit
// callback needs it.
DatabaseState* this_database();

// The state of this database if this session has looked it up; safe in callbacks.
DatabaseState* this_database_if_known();

// The state of this database if any session has looked it up; takes no slot, safe in callbacks.
DatabaseState* slot_if_taken();

// Frees the slot of this database, from which the extension is gone; safe in callbacks. A database
// that maintainers serve keeps its slot.
void give_back_slot();

// The slot number of this database.
int slot_of_database(const DatabaseState* database);

Waiter* waiter_array(SharedState* state);

// The start of this server incarnation, and its number.
TimestampTz incarnation_started_at();
int64 incarnation();

// Lowers a due time to `at`; true when it was later before.
bool lower_due(pg_atomic_uint64* due, TimestampTz at);

// The slot of a queue. An index stores it, so the function must never change.
int queue_slot(const text* name);
inline int slot_of_hash(uint64 name) {
  return static_cast<int>((name ^ (name >> 32)) % kQueueSlots);
}

// The slot of a job that others wait for, an index of the marks' second part. Ids of one time
// follow each other, so the remainder spreads them best. An index stores it, so it must never
// change.
inline int parent_slot(int64 job_id) { return static_cast<int>(job_id & (kParentSlots - 1)); }
constexpr int parent_mark(int parent_slot) { return kQueueSlots + parent_slot; }

// The task bit of an identifier.
int task_bit(const text* identifier);

}  // namespace pulse
