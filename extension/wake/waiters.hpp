// Slots of waiting backends, and the choice of waiters that a commit wakes.
//
// A woken waiter keeps its slot until it claims. Until then it may be given more jobs: its claim
// will find what is committed by then, so no other waiter need wake. If its session ends or fails
// before it claims, its wake-up is handed over to other waiters.
#pragma once

#include "server/postgres.hpp"
#include "server/shared_memory.hpp"

namespace pulse {

// What a waiter serves. `wake_group` is a hash of its claim terms; it starts `capacity` jobs at
// once.
struct WaiterTerms {
  int64 worker_id;
  uint64 tasks;
  uint64 wake_group;
  uint32 capacity;
};

// Takes a slot; false when none is free.
bool enter_waiting(const WaiterTerms& terms);

// True when this session was woken and has not claimed since; has_slot() also returns the worker
// of its slot.
bool is_woken();
bool has_slot(int64* worker_id);

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
void wake_waiters(DatabaseState* database, const uint32* jobs, uint64 task_bits, bool any);

// Wakes the waiter of one worker.
void wake_worker(int64 worker_id);

// Wakes every waiter of this database.
void wake_all_waiters();

// Makes all waiters of this database recompute their deadlines.
void signal_waiters();

// Each task has a few timer owners, its first waiters, which act on jobs that become due. The
// rest stay asleep: a thousand timers would wake a thousand waiters for one job. A leaving owner
// signals its successor.
//
// Returns the tasks of these that have a future job.
uint64 tasks_with_due_jobs(DatabaseState* database, uint64 tasks);

// The tasks of these that this session owns the timer of.
uint64 tasks_timed_here(uint64 tasks);

// Makes the timer owners of these tasks recompute their deadlines.
void signal_timer_owners(uint64 tasks);

}  // namespace pulse
