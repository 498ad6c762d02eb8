// pulse.wait_for_job(): waits without a snapshot. A claim samples the generations before it takes
// its snapshot, so the wait misses no commit between the sample and the wait.
#pragma once

#include "server/postgres.hpp"
#include "shared/memory.hpp"

namespace pulse {

// Called by a claim before its snapshot; stores the generations of these tasks in this session. The
// wake group is a hash of the claim's terms. The worker starts `capacity` jobs at once. True when
// the claim continues a round. The first sample of the round stays: a commit since then may have a
// job for a name that the round has passed.
bool sample_generations(int64 worker_id, uint64 tasks, uint64 wake_group, int capacity);

// True when the worker was woken and its claims have not read every name since.
bool was_woken();

// Called by a claim at its end; a later value outweighs an earlier value.
//
// kSoon: a job requires that this worker be idle, which no commit signals; a wait lasts one poll
// interval.
//
// kBusy: another backend was promoting a queue, or holds a job's row lock. Neither backend sends a
// wake-up when the lock is released, so the worker polls with growing delay.
//
// kUnseen: the claim took no job, and left names to the next claim of the round; a wait returns at
// once.
//
// kNow: more jobs are ready for this worker; a wait returns at once.
enum class WorkLeft { kNone, kSoon, kBusy, kUnseen, kNow };
void note_work_left(WorkLeft left);

// Sends the client a notice if a sweep is due, so that a fleet too busy to wait also sweeps.
void offer_sweep();

// Called when the transaction of a claim has committed: the claim has used the wake-up.
void forget_unused_wakeup();

// Frees this backend's waiter entry after an error. Hands over the wake-up that the waiter or the
// failed claim had received.
void leave_waiting();

}  // namespace pulse
