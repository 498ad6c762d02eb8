// Shared memory of the backends: owns the state of the server and of each database, with waiters,
// wake-ups and promotion marks. The parts of a state that one folder alone knows stand in headers
// of their own.
//
// Invariants:
// - Shared memory holds no durable fact. After a restart it is empty. Claims and sweeps rebuild
//   from the tables the areas that they need.
// - Each struct says the guard of its fields. `atomic`: any backend reads and writes, by the
//   operations of port/atomics.h. `constant`: written by the creator alone. `owner`: written by the
//   backend that owns the entry. `NAME_lock` or `lock`: read and written under that spinlock
//   (server/spinlock.hpp) or lightweight lock. `advisory KIND`: read and written under the advisory
//   lock of that LockKind.
// - A database entry belongs to the database of `oid`. A backend gives an entry to a database under
//   the server's AddinShmemInitLock, after a reset of an entry that another database had.
#pragma once

#include "server/postgres.hpp"
#include "shared/hashes.hpp"
#include "shared/level_state.hpp"
#include "shared/maintainer_state.hpp"
#include "shared/waiter.hpp"

namespace pulse {

constexpr uint64 kNever = PG_INT64_MAX;  // a due time that never comes

// After a start, and after new settings of the members of a level, claims and sweeps check all
// queues once, from entry 0 on.
enum FirstCheck : uint32 { kCheckIsDue = 0, kCheckBegun = 1, kCheckEnded = 2 };

// State of one database. The first backend that needs the database entry takes it. The entry stays
// taken until a restart, or until the extension or the database is dropped. Guard of all fields:
// atomic, except in RateCredit.
struct DatabaseState {
  // The database; 0: the entry is free.
  pg_atomic_uint32 oid;
  pg_atomic_uint32 first_check;  // a value of FirstCheck
  pg_atomic_uint32 next_bucket;  // the queue bucket at which the next check of queues continues
  // The parent bucket at which the next sweep continues.
  pg_atomic_uint32 next_parent_bucket;
  // Incremented by a commit that may have a job for the task bit, the wake group, any worker.
  pg_atomic_uint64 generation[kTaskBits];
  slock_t wake_group_lock;  // held by a session that joins a group; no other field needs the lock
  WakeGroup wake_groups[kMaxWakeGroups];
  pg_atomic_uint64 any_generation;
  // The earliest known run_at of a future job per task bit, and of a parked future job.
  pg_atomic_uint64 next_due[kTaskBits];
  pg_atomic_uint64 parked_due;
  // Parked jobs due before this time have set the queue marks of their queues.
  pg_atomic_uint64 parked_seen;
  // When a waiter checks whether woken waiters have claimed; monotonic clock.
  pg_atomic_uint64 wake_check_due;
  // When a sweep is requested, before the interval of sweeps ends.
  pg_atomic_uint64 sweep_due;
  // A bit for each queue bucket, set when a queue of the entry may be promoted. Then a bit for each
  // parent bucket, set when a job that waits for a parent of the entry may start.
  pg_atomic_uint64 promotion_marks[kPromotionMarkWords];
  // The promotion mark at which the next call begins to search, of whichever session.
  pg_atomic_uint32 next_promotion_mark;
  pg_atomic_uint32 ring_calls;  // how many calls have found a fair ring with something to start
  // The parent buckets of the jobs that wait for a parent and were checked, and perhaps further
  // entries.
  pg_atomic_uint64 awaited_parents[kParentWords];
  // waiting_levels: level groups in which queues wait. freed_levels: level groups with waiting
  // queues and a freed place; then a bit for each fair ring that may have a job to start.
  pg_atomic_uint64 waiting_levels;
  pg_atomic_uint64 freed_levels;
  // Level groups of the levels with a rate, and perhaps further groups.
  pg_atomic_uint64 rated_levels;
  LevelGroup level_groups[kLevelGroups];
  RateCredit rate_credits[kRateCredits];
  pg_atomic_uint64 blocked_sweeps;  // how many sweeps in a row a lock of a table kept from recovery
  pg_atomic_uint64 refused_letters;
  MaintainerState maintainer;
};

struct SharedState {
  int64 started_at;    // Start of this server incarnation. Guard: constant.
  uint64 incarnation;  // Random number of this incarnation. Guard: constant.
  // Guard of both numbers: constant.
  int32 databases;
  int32 waiters;
  // Guard from here on: atomic. The launcher: index into ProcGlobal->allProcs, plus one; 0: none.
  pg_atomic_uint32 launcher;
  // 1: the launcher retries the databases that it could not serve
  pg_atomic_uint32 must_retry;
  pg_atomic_uint32 may_stay;  // 1: every listed database can keep a maintainer
  pg_atomic_uint32 waiting;   // waiter entries in use; a commit that reads 0 wakes no waiter
  // End-waiter entries in use; a commit that reads 0 reads no end-waiter entry.
  pg_atomic_uint32 end_waiting;
  EndWaiter end_waiters[kEndWaiters];
  DatabaseState database[FLEXIBLE_ARRAY_MEMBER];
  // followed by Waiter[waiters]
};

constexpr int kPreloadedDatabases = 64;

// Returns a named area of shared memory; the first process that asks creates and initialises the
// area. May raise where no memory is left.
using InitArea = void (*)(void* area, Size size);
void* shared_area(const char* name, Size size, InitArea init);

// As shared_area(), at run time from the server's spare memory. NULL when no spare memory is left.
void* area_of_slack(const char* name, Size size, InitArea init);

// The size and the creation of this file's area; only for a server that preloads the library.
Size shared_state_size();
void create_shared_state();

// Whether the server preloaded the library, so that every area has the full size.
bool is_preloaded();

// Called with the entry of a dropped database, before another database takes it over.
extern void (*on_entry_taken_over)(int entry);

// The shared state, allocated at run time if the library was not preloaded. NULL when no memory is
// left: then workers poll.
SharedState* shared();

// The state of a database. NULL when no entry is left.
DatabaseState* database_state(Oid database);

// The state of this database, or NULL. May raise, so a transaction calls this function before its
// commit callback needs the state.
DatabaseState* this_database();

// The state of this database if this session has found it before; safe in callbacks.
DatabaseState* this_database_if_known();

// The state of this database if any session has taken an entry for it; takes no entry, safe in
// callbacks.
DatabaseState* entry_if_taken();

// Frees the entry of this database, which no longer has the extension; safe in callbacks. A
// database that maintainers serve keeps its entry.
void give_back_entry();

// Whether maintainers sweep in this database, and are not overdue: the launcher and a maintainer
// may be stopped or hang, and then clients sweep.
bool is_served(DatabaseState* database);

// The entry number of this database.
int entry_number(const DatabaseState* database);

// The waiter entries, which follow the last database.
Waiter* waiter_array(SharedState* state);

// The start of this server incarnation, and its number.
TimestampTz incarnation_started_at();
int64 incarnation();

// Lowers a due time to `at`; true when it was later before.
bool lower_due(pg_atomic_uint64* due, TimestampTz at);

}  // namespace pulse
