// Parked workers: how they wait without a snapshot, and how a commit wakes exactly as many as it
// has jobs for. A claim samples the generations before its snapshot, so nothing committed between
// the claim and the wait is missed.
#pragma once

#include "prelude.hpp"
#include "shared_memory.hpp"

namespace pulse {

// Called by claim, before its snapshot: remembers the generations of these tasks in this session.
void sample_generations(int64 worker_id, uint64 tasks);

// Called by claim at its end. kNow: there is more for this worker, a wait returns at once. kSoon:
// there is a job that waits for this worker to be idle, which no commit tells: a wait lasts one
// poll interval. kBusy: somebody was promoting a queue; commits wake others before they let go of
// their locks, so the next look is a moment later, and later each time.
enum class WorkLeft { kNone, kNow, kSoon, kBusy };
void note_work_left(WorkLeft left);

// Wakes one waiter per job among those that serve its task, and one more whoever it is.
// Callable from a commit callback.
void wake_waiters(uint32* jobs, uint64 task_bits, bool any);

// Wakes the waiter of one worker.
void wake_worker(int64 worker_id);

// Lets the waiters of these tasks compute their deadlines anew.
void nudge_waiters(uint64 tasks);

// Asks the caller, by a notice, for a sweep that is due: so a fleet that is too busy to wait hears
// of it.
void offer_sweep();

// Gives up the waiter of this backend after an error, passing on a wake-up it may have been given.
void leave_waiting();

}  // namespace pulse
