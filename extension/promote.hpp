// Promotion: the only thing that opens a job of a named queue. See sql/README.md, "Queues".
#pragma once

#include "prelude.hpp"

namespace pulse {

// Takes up to limit marks and promotes their queues; true when marks remain.
bool promote_marked(int limit);

// Marks the queues of parked jobs that fell due since the last look.
void mark_fallen_due();

// Looks at every queue with parked jobs and marks those with a place to give away. Covers crashes,
// COMMIT PREPARED and missing shared memory. Also learns when the next future job of each task falls
// due. Returns how many queues it marked.
int reconcile_queues();

}  // namespace pulse
