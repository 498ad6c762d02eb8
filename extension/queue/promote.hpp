// Promotion: the only code that opens a job of a named queue. docs/design/queues.md explains
// queues, docs/design/limits.md the levels of queues, docs/design/fairness.md the turns of members.
#pragma once

#include "limit/rate.hpp"
#include "server/postgres.hpp"

namespace pulse {

struct PlacedJobs;

// The work that promote_marked() left undone.
struct Promotion {
  bool more;  // promotion marks remain, or a queue has more jobs to open than `places_left` allowed
  bool busy;  // another transaction is promoting a queue: the queue mark was set again
};

// Takes promotion marks and promotes the queues of each promotion mark, until `places_left` jobs
// are opened or `max_marks` promotion marks are taken; a claim (with `placed`) checks a
// hundred queues more until a job may start. After its last claim the caller passes `known` to
// store_readings(), which writes the spent tokens.
Promotion promote_marked(int places_left, int max_marks, KnownLevel** known,
                         PlacedJobs* placed = nullptr);

// Sets the queue marks of the parked jobs that became due since the last call.
void mark_queues_fallen_due();

// Continues the check of all queues after a start, when shared memory has no queue marks. Checks
// the next thousand queues, and at first sets the parent marks of all awaited parents. `more`: the
// next claim goes on; `busy`: another claim is checking.
Promotion continue_first_check();

// Checks queues with parked jobs, and sets the queue mark of each queue with a free place. The
// check covers crashes, COMMIT PREPARED and missing shared memory. Checks `max_count` queues (0:
// all) until `ends`; a bounded call goes on where the call before ended. Returns how
// many queue marks the call has set; -1: a different call is checking queues.
int reconcile_queues(int max_count, TimestampTz ends = DT_NOEND);

}  // namespace pulse
