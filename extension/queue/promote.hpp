// Promotion: the only code that opens a job of a named queue. docs/design/queues.md explains
// queues, docs/design/limits.md their levels, docs/design/fairness.md the turns of their members.
#pragma once

#include "queue/rate.hpp"
#include "server/postgres.hpp"

namespace pulse {

struct PlacedJobs;

// What promote_marked() left undone.
struct Promotion {
  bool more;  // marks remain, or a queue has more jobs to open than `room` allowed
  bool busy;  // another transaction is promoting a queue: its mark was set again
};

// Takes queue marks and promotes their queues, until `room` jobs are opened or `max_marks` marks
// are taken. The caller passes `known` to store_looks() after its last claim, which writes the
// spent tokens.
Promotion promote_marked(int room, int max_marks, KnownLevel** known, PlacedJobs* placed = nullptr);

// Marks the queues of parked jobs that became due since the last call.
void mark_fallen_due();

// After a start nothing is known of queues. Checks the next thousand, and at first marks all
// parents that jobs wait for. `more`: the next claim goes on; `busy`: another claim is checking.
Promotion continue_first_look();

// Checks queues with parked jobs and marks those with a free slot. It covers crashes, COMMIT
// PREPARED and missing shared memory. It checks `max_count` queues (0: all) until `ends`; a bounded
// call goes on where the last one ended. Returns the number of marked queues.
int reconcile_queues(int max_count, TimestampTz ends = DT_NOEND);

}  // namespace pulse
