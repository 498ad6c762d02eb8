// What the backends of one server share: wake-ups and marks. Nothing durable lives here; after a
// restart it is empty and the first claim or sweep rebuilds what it needs from the tables.
// Every field is an atomic or is written only by the owner of its waiter; there is no lock.
#pragma once

#include "prelude.hpp"

namespace pulse {

constexpr int kTaskBits = 64;      // a task hashes to one of these bits
constexpr int kQueueSlots = 8192;  // a queue hashes to one of these marks
constexpr int kMarkWords = kQueueSlots / 64;
constexpr int kExcusedEnds = 256;
constexpr uint64 kNever = PG_INT64_MAX;  // a due time that does not come

// Per database; taken by the first backend that needs it and kept until the server restarts.
struct DatabaseState {
  pg_atomic_uint32 oid;                    // 0: free
  pg_atomic_uint64 reconciled_at;          // the last look at all queues; 0: none since the start
  pg_atomic_uint64 generation[kTaskBits];  // bumped by each commit that may have work for the bit
  pg_atomic_uint64 any_generation;         // bumped by each commit that may have work for anybody
  pg_atomic_uint64 next_due[kTaskBits];    // when the earliest known future job falls due
  pg_atomic_uint64 parked_due;             // the same for jobs behind a queue
  pg_atomic_uint64 parked_seen;            // parked jobs due before this have marked their queue
  pg_atomic_uint64 sweep_due;              // when a sweep is wanted before its interval ends
  pg_atomic_uint64 marks[kMarkWords];      // queues that may be promoted
};

// One parked backend. The word is (sequence << 2 | state), so that a waker's compare-and-swap
// fails when the waiter it looked at has gone and another took its place.
enum WaiterState : uint64 { kFree = 0, kTaken = 1, kWaiting = 2, kWoken = 3 };

struct Waiter {
  pg_atomic_uint64 word;
  uint32 database;  // the fields below: written by the owner while kTaken, then constant
  int32 backend;    // index into ProcGlobal->allProcs
  uint64 tasks;
  int64 worker_id;
};

struct SharedState {
  int64 started_at;    // of this server incarnation: constant after creation
  uint64 incarnation;  // random, names this incarnation: constant after creation
  int32 databases;
  int32 waiters;
  pg_atomic_uint32 waiting;  // how many waiters are in use, so that most commits look no further
  // Attachments whose session was ended by the server: their end says nothing about the worker.
  pg_atomic_uint64 excused[kExcusedEnds];
  pg_atomic_uint64 excused_count;
  DatabaseState database[FLEXIBLE_ARRAY_MEMBER];
  // followed by Waiter[waiters]
};

// Reserves shared memory; called from _PG_init while the server preloads libraries.
void request_shared_memory();

// The shared struct, taken at run time where the server was started without this library.
// NULL where there is none to be had: then everything works by polling.
SharedState* shared();

// The state of this database, or NULL. May raise; call it before a transaction needs it at commit.
DatabaseState* this_database();

// The same without creating it: safe in callbacks.
DatabaseState* this_database_if_known();

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
uint64 fnv1a(const char* data, int length);

}  // namespace pulse
