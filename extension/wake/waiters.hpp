// Slots of waiting backends, and the choice of waiters that a commit wakes.
//
// A woken waiter keeps its slot until it claims. Until then it may be given more jobs: its claim
// will find what is committed by then, so no other waiter need wake. If its session ends or fails
// before it claims, its wake-up is handed over to other waiters.
#pragma once

#include "server/postgres.hpp"
#include "server/shared_memory.hpp"

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

// Takes a slot; false when none is free. `wake_group` is a hash of the claim terms; the worker
// starts `capacity` jobs at once.
bool enter_waiting(int64 worker_id, uint64 tasks, uint64 wake_group, uint32 capacity);

// True when this session was woken and has not claimed since.
bool is_woken();

// NULL: the session has none.
const Waiter* slot_of_session();

// True when fewer than `count` waiters of this database have lower slots, or when this session does
// not wait. Only these do work that every waiter could do, because waking a thousand costs more
// than the work.
bool is_among_first_waiters(int count);

// Frees the slot, unless the waiter was woken for a job.
void stop_waiting();

// The jobs for which a waiter was woken.
struct Wake {
  uint64 tasks;
  uint64 wake_group;
  uint32 jobs;          // 0: no wake-up
  bool is_handed_over;  // another waiter received it first
};

// Frees the slot when a claim begins, because the claim finds what is committed by now.
Wake consume_wakeup();

// Wakes other waiters as if the jobs had been committed now.
void hand_over_wakeup(const Wake& wake);

// Announces committed jobs: wakes one waiter per job among those that serve its task. With `any`,
// one further waiter wakes, whatever it serves. Tasks may share a bit and some claims exclude
// flags, so each wake group gets one waiter per job. If a group has too few waiters, its sessions
// that are about to wait claim again instead. Safe in a commit callback.
void wake_waiters(DatabaseState* database, const JobCounts& jobs, bool any,
                  bool is_handed_over = false);

// Hands over each wake-up that a waiter received 100 ms ago and has not used: its process may be
// stopped.
void hand_over_untaken(DatabaseState* database);

// Wakes the waiter of one worker.
void wake_worker(int64 worker_id);

// Wakes every waiter of this database.
void wake_all_waiters();

// The first waiters of a database are its timer owners: they act on jobs that become due, of any
// task. The rest stay asleep, because a thousand timers would wake a thousand waiters for one job.
// One owner is not enough: it may have been woken for a job. A leaving owner signals its successor.
constexpr int kTimerOwners = 4;

// Makes the first waiters of this database recompute their deadlines; without a count, all of them.
void signal_waiters(int count = PG_INT32_MAX);

// The earliest known run_at of a future job, or kNever.
uint64 earliest_due(DatabaseState* database);

// Requests a sweep of the database at that time: from the background worker first, else from a
// waiter.
void request_sweep(DatabaseState* database, TimestampTz at);

void wake_launcher();

// Wakes the launcher, because a database that it could not serve may have changed.
void signal_launcher();

}  // namespace pulse
