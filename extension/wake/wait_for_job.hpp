// Parked workers: how they wait without a snapshot. A claim samples the generations before its
// snapshot, so nothing committed between the claim and the wait is missed.
#pragma once

#include "server/postgres.hpp"
#include "server/shared_memory.hpp"

namespace pulse {

// Called by claim, before its snapshot: remembers the generations of these tasks in this session.
// `wake group` names exactly what is claimed; `capacity` jobs are started at once.
void sample_generations(int64 worker_id, uint64 tasks, uint64 wake_group, int capacity);

// Called by claim at its end. kNow: there is more for this worker, a wait returns at once. kSoon:
// there is a job that waits for this worker to be idle, which no commit tells: a wait lasts one
// poll interval. kBusy: somebody was promoting a queue; commits wake others before they let go of
// their locks; or somebody locks a job, and need not tell when he lets go of it. So the next look
// is a moment later, and later each time.
enum class WorkLeft { kNone, kNow, kSoon, kBusy };
void note_work_left(WorkLeft left);

// Asks the caller, by a notice, for a sweep that is due: so a fleet that is too busy to wait hears
// of it.
void offer_sweep();

// The transaction of a claim that was woken has committed.
void forget_unused_wakeup();

// Gives up the waiter of this backend after an error, passing on a wake-up that it, or the claim
// that failed, was given.
void leave_waiting();

}  // namespace pulse
