// Sessions that wait: for a job, in wake groups, and for the end of jobs.
//
// Invariants:
// - The terms of a wake group change only while no session uses the group, under wake_group_lock.
// - A waiter entry belongs to the backend that has taken it by compare-and-swap (wake/waiters.hpp).
// - Only the owner of an end-waiter entry writes the awaited ids (wake/end_waiters.hpp).
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int kMaxWakeGroups = 32;  // wake groups per database

// Sessions with the same claim terms, tasks and excluded flags, so that each can replace any other.
// A commit that woke enough sessions of a group leaves the group's generation alone. Guard: atomic;
// a session joins under wake_group_lock, and writes wake_group and tasks only there.
struct WakeGroup {
  pg_atomic_uint32 users;       // number of sessions; 0: free
  pg_atomic_uint64 wake_group;  // hash of the claim terms
  pg_atomic_uint64 tasks;       // task bits of the claim terms
  // Incremented by a commit that may have a job for the group and woke too few sessions of the
  // group.
  pg_atomic_uint64 generation;
};

// A backend that waits, or that a commit woke and that has not claimed since. `word` packs the
// state, the number of further jobs for the waiter, and a sequence number. The sequence number
// makes a waker's compare-and-swap fail when another backend took the entry.
enum WaiterState : uint64 { kFree = 0, kTaken = 1, kWaiting = 2, kWoken = 3 };

struct Waiter {
  // Guard of both: atomic.
  pg_atomic_uint64 word;
  pg_atomic_uint64 woken_at;  // monotonic clock, in microseconds
  // Guard from here on: owner while kTaken, then constant.
  uint32 database;
  int32 backend;    // index into ProcGlobal->allProcs
  uint32 capacity;  // number of jobs that the worker starts at once
  uint64 tasks;     // task bits that the waiter serves
  // Hash of the waiter's claim terms; waiters of one wake group can replace each other.
  uint64 wake_group;
  int64 worker_id;
};

// A session that waits for the end of jobs. Guard of all fields: atomic. Only the owner writes
// `ids`, and reads the jobs afterwards.
constexpr int kAwaitedIds = 8;
struct EndWaiter {
  pg_atomic_uint32 process;  // the session: index into ProcGlobal->allProcs, plus one; 0: free
  pg_atomic_uint32 database;
  pg_atomic_uint64 ids[kAwaitedIds];  // the awaited jobs: see end_waiters.cpp
};
constexpr int kEndWaiters = 128;  // of all databases; further sessions poll

}  // namespace pulse
