// Waiting: owns the waiter entries in shared memory, and chooses the waiters that a commit wakes.
//
// Invariants:
// - The owner writes all fields but `word` and `woken_at` while the state is kTaken; then the
//   fields are constant.
// - `word` changes only by compare-and-swap, with a new sequence number at each change of the
//   state. So a wake-up never reaches another backend that took the entry meanwhile.
// - A woken waiter keeps its entry until the session claims. Until the claim, commits may give the
//   waiter more jobs: the claim will find all jobs committed by then, so no other waiter need wake.
// - If the session of a woken waiter ends or fails before the claim, it hands the wake-up over to
//   other waiters.
#pragma once

#include "server/postgres.hpp"
#include "shared/memory.hpp"

namespace pulse {

// Numbers of jobs per task bit.
struct JobCounts {
  uint64 bits;  // the task bits with jobs
  uint32 jobs[kTaskBits];

  void add(int bit) {
    bits |= UINT64CONST(1) << bit;
    jobs[bit]++;
  }
};

// Takes a waiter entry; false when no entry is free. `wake_group` is a hash of the claim terms; the
// worker starts `capacity` jobs at once.
bool enter_waiting(int64 worker_id, uint64 tasks, uint64 wake_group, uint32 capacity);

// True when this session was woken and has not claimed since.
bool is_woken();

// The waiter entry of this session; NULL: none.
const Waiter* entry_of_session();

// True when fewer than `count` waiters of this database have lower entries, or when this session
// does not wait. Only these waiters do work that every waiter could do, because waking a thousand
// waiters costs more than the work.
bool is_among_first_waiters(int count);

// Frees the entry, unless a commit woke the waiter for a job.
void stop_waiting();

// The jobs for which a waiter was woken.
struct Wake {
  uint64 tasks;
  uint64 wake_group;
  uint32 jobs;          // 0: no wake-up
  bool is_handed_over;  // another waiter received the wake-up first
};

// Frees the entry at the beginning of a claim, because the claim finds all jobs committed by now.
Wake consume_wakeup();

// Wakes other waiters as if the jobs had been committed now.
void hand_over_wakeup(const Wake& wake);

// Announces committed jobs: wakes a waiter for each job among the waiters that serve the job's
// task. With `any`, one further waiter wakes, whatever tasks it serves. Tasks may share a bit and
// some claims exclude flags, so each wake group gets a waiter for each job. If a group has too few
// waiters, its sessions that are about to wait claim again instead. Cannot fail, so a commit
// callback may call this function.
void wake_waiters(DatabaseState* database, const JobCounts& jobs, bool any,
                  bool is_handed_over = false);

// Hands over each wake-up that a waiter received 100 ms ago and has not used: its process may be
// stopped.
void hand_over_untaken(DatabaseState* database);

// Wakes the waiter of one worker.
void wake_worker(int64 worker_id);

// Wakes every waiter of this database.
void wake_all_waiters();

// The first waiters of a database are the timer owners: they act on jobs that become due, of any
// task. The other waiters stay asleep, because a thousand timers would wake a thousand waiters for
// one job. A single timer owner is not enough, because a commit may have woken it for a job. A
// timer owner that leaves signals its successor.
constexpr int kTimerOwners = 4;

// Makes the first waiters of this database recompute their deadlines; without a count, all waiters.
void signal_waiters(int count = PG_INT32_MAX);

// The earliest known run_at of a future job, or kNever.
uint64 earliest_due(DatabaseState* database);

// Requests a sweep of the database at that time: from the background worker first, else from a
// waiter.
void request_sweep(DatabaseState* database, TimestampTz at);

// Sets the latch of the launcher, if it runs.
void wake_launcher();

// Wakes the launcher, because a database that it could not serve may have changed.
void signal_launcher();

}  // namespace pulse
