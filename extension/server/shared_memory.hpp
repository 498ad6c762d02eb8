// What the backends of one server share: wake-ups and marks. Nothing durable lives here; after a
// restart it is empty and the first claim or sweep rebuilds what it needs from the tables.
// Every field is an atomic or is written only by the owner of its waiter; there is no lock.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int kTaskBits = 64;      // a task hashes to one of these bits
constexpr int kQueueSlots = 8192;  // a queue hashes to one of these marks
constexpr int kMarkWords = kQueueSlots / 64;
constexpr int kWakeGroupPlaces = 32;     // kinds of claiming workers at once
constexpr uint64 kNever = PG_INT64_MAX;  // a due time that does not come

// How a maintainer (maintainer.hpp) ended, for the launcher. A maintainer that said nothing has
// died.
enum class MaintainerEnd : uint32 { kDied, kRan, kOff, kNotInstalled, kBusy, kFailed };

// The background worker in one database. Times are of the monotonic clock, in microseconds.
struct MaintainerState {
  pg_atomic_uint32 process;      // a maintainer at work: index into ProcGlobal->allProcs, plus one
  pg_atomic_uint32 has_swept;    // the one at work has come so far
  pg_atomic_uint32 is_serving;   // one has swept: who waits leaves sweeps to it for a moment
  pg_atomic_uint32 end;          // MaintainerEnd of the last one
  pg_atomic_uint64 next_start;   // when it wants to be started again
  pg_atomic_uint64 last_sweep;   // by the interval; 0: the next maintainer sweeps at once
  pg_atomic_uint64 reported_at;  // when it complained, and
  pg_atomic_uint32 reported_sqlstate;  // about what
};

// Sessions that claim exactly the same (wake_groups.hpp).
struct WakeGroup {
  pg_atomic_uint32 users;       // sessions; 0: free
  pg_atomic_uint64 wake_group;  // names what they claim
  pg_atomic_uint64 tasks;       // the bits of it
  pg_atomic_uint64 generation;  // bumped by each commit that may have a job for them, woke too few
};

// Per database; taken by the first backend that needs it and kept until the server restarts.
struct DatabaseState {
  pg_atomic_uint32 oid;                      // 0: free
  pg_atomic_uint32 job;                      // the table that what is said of queues is about
  pg_atomic_uint64 reconciled_at;            // the last look at all queues; 0: none since the start
  pg_atomic_uint64 generation[kTaskBits];    // bumped by each commit that may have work for the bit
  WakeGroup wake_groups[kWakeGroupPlaces];   // the same, exactly
  pg_atomic_uint64 any_generation;           // bumped by each commit that may have work for anybody
  pg_atomic_uint64 next_due[kTaskBits];      // when the earliest known future job falls due
  pg_atomic_uint64 parked_due;               // the same for jobs behind a queue
  pg_atomic_uint64 parked_seen;              // parked jobs due before this have marked their queue
  pg_atomic_uint64 sweep_due;                // when a sweep is wanted before its interval ends
  pg_atomic_uint64 queue_marks[kMarkWords];  // queues that may be promoted
  MaintainerState maintainer;
};

// One backend that waits, or was woken and has not claimed since. The word has its state, how many
// more jobs than the one it was woken for it may be given, and a sequence number, so that a waker's
// compare-and-swap fails when the waiter it looked at has gone and another took its place.
enum WaiterState : uint64 { kFree = 0, kTaken = 1, kWaiting = 2, kWoken = 3 };

struct Waiter {
  pg_atomic_uint64 word;
  pg_atomic_uint64 woken_at;  // on the monotonic clock
  uint32 database;            // the fields below: written by the owner while kTaken, then constant
  int32 backend;              // index into ProcGlobal->allProcs
  uint32 capacity;            // how many jobs it starts at once
  uint64 tasks;               // the bits of what it serves
  uint64 wake_group;  // names what it serves exactly: those of one kind can stand in for each other
  int64 worker_id;
};

struct SharedState {
  int64 started_at;    // of this server incarnation: constant after creation
  uint64 incarnation;  // random, names this incarnation: constant after creation
  int32 databases;
  int32 waiters;
  pg_atomic_uint32 launcher;    // its index into ProcGlobal->allProcs, plus one; 0: none
  pg_atomic_uint32 has_news;    // databases that it could not serve are to be looked at again
  pg_atomic_uint32 is_crowded;  // maintainers with nothing to do at once make place for others
  pg_atomic_uint32 may_stay;    // there are processes enough for a maintainer in each database
  pg_atomic_uint32 waiting;  // how many places of waiters are in use: most commits look no further
  DatabaseState database[FLEXIBLE_ARRAY_MEMBER];
  // followed by Waiter[waiters]
};

constexpr int kPreloadedDatabases = 64;

// An area of shared memory, made and filled by the first process that asks for it.
using InitArea = void (*)(void* area, Size size);
void* shared_area(const char* name, Size size, InitArea init);

// The same at run time, of what the server leaves for small users; NULL where nothing is left.
void* area_of_slack(const char* name, Size size, InitArea init);

// The area of this file; only where the server preloads this library.
Size shared_state_size();
void create_shared_state();

// Whether the server preloaded this library, and so has room for everything.
bool is_preloaded();

// Called with the place of a dropped database that another takes over, before that can be found.
extern void (*on_place_taken_over)(int place);

// The shared struct, taken at run time where the server was started without this library.
// NULL where there is none to be had: then everything works by polling.
SharedState* shared();

// The state of a database, or NULL where there is no place left.
DatabaseState* database_state(Oid database);

// The state of this database, or NULL. May raise; call it before a transaction needs it at commit.
DatabaseState* this_database();

// The same without creating it: safe in callbacks.
DatabaseState* this_database_if_known();

// Which place this database has.
int place_of_database(const DatabaseState* database);

Waiter* waiter_array(SharedState* state);

// The start of this incarnation of the server, and a number that names it.
TimestampTz incarnation_started_at();
int64 incarnation();

// Lowers a due time; true when it was lowered.
bool lower_due(pg_atomic_uint64* due, TimestampTz at);

// The mark of a queue; an index holds it, so it never changes.
int queue_slot(const text* name);

// The bit of a task.
int task_bit(const char* identifier, int length);

}  // namespace pulse
