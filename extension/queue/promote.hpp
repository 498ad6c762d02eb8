// Promotion: the only thing that opens a job of a named queue. See sql/README.md, "Queues".
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// What a look at the marks left behind.
struct Promotion {
  bool more;  // marks remain, or a queue had more to give than was asked for
  bool busy;  // a queue is being promoted by somebody else: its mark went back
};

// Takes marks and promotes their queues, until so many jobs are opened or so many marks looked at.
Promotion promote_marked(int room, int looks);

// Marks the queues of parked jobs that fell due since the last look.
void mark_fallen_due();

// Looks at every queue with parked jobs and marks those with a place to give away. Covers crashes,
// COMMIT PREPARED and missing shared memory. With a bound it looks at so many queues and goes on
// there the next time; 0 means all. Returns how many queues it marked.
int reconcile_queues(int max_count);

}  // namespace pulse
