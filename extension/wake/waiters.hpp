// The places of those who wait, and who of them is told of what a commit has for them.
//
// A waiter that was woken keeps its place until it claims. Until then it may be given more: a claim
// that is about to be made finds what is committed now, and nobody else need be woken for it. If it
// does not come to claim, because its session ends or fails, what it was given is passed on.
#pragma once

#include "server/postgres.hpp"
#include "server/shared_memory.hpp"

namespace pulse {

// Whom a waiter stands for. `wake group` names exactly what it claims; it starts `capacity` jobs at
// once.
struct WaiterTerms {
  int64 worker_id;
  uint64 tasks;
  uint64 wake_group;
  uint32 capacity;
};

// Takes a place; false when there is none.
bool enter_waiting(const WaiterTerms& terms);

// Whether this session was woken and has not claimed since; whose place it has, if it has one.
bool is_woken();
bool has_place(int64* worker_id);

// Whether fewer than `count` of this database have lower places. What all could see to, these do,
// because a thousand that wake for it cost more than the thing itself. True for who does not wait.
bool is_among_first_waiters(int count);

// Gives the place up, unless it was woken for a job.
void stop_waiting();

// What somebody was woken for.
struct Wake {
  uint64 tasks;
  uint64 wake_group;
  uint32 jobs;     // 0: for none
  bool is_passed;  // by another who was woken for it first
};

// Gives the place up, for a claim that begins: what is committed by now, it finds.
Wake consume_wakeup();

// Tells others, as if their jobs had been committed now.
void hand_over_wakeup(const Wake& wake);

// Tells of new jobs: wakes one waiter per job among those that serve its task, and with `any` one
// more whoever it is. Tasks may share a bit, and some claims forbid flags: so one per job of each
// wake group of waiter. Where that is not enough, those who are about to wait look again instead.
// Callable from a commit callback.
void wake_waiters(DatabaseState* database, const uint32* jobs, uint64 task_bits, bool any);

// Wakes the waiter of one worker.
void wake_worker(int64 worker_id);

// Wakes every waiter of this database.
void wake_all_waiters();

// Lets all waiters of this database compute their deadlines anew.
void signal_waiters();

// Of each task the first few that wait for it see to its jobs that fall due, and the others sleep
// on: a thousand timers would wake a thousand for one job. Who leaves tells his successor.
uint64 tasks_with_due_jobs(DatabaseState* database, uint64 tasks);

// Which of these tasks this session sees to.
uint64 tasks_timed_here(uint64 tasks);

// Lets those who see to these tasks compute their deadlines anew.
void signal_timer_owners(uint64 tasks);

}  // namespace pulse
