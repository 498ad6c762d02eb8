// Shared memory about queues: the queue marks, parked_seen and first_look of DatabaseState. A
// mark says that a queue may have something to promote.
#pragma once

#include "server/shared_memory.hpp"

namespace pulse {

// True until sessions have checked all queues since this database took its place in shared memory.
bool is_first_look_due();

void mark_queue(DatabaseState* database, int slot);

// The caller is about to check queues. As long as the first look lasts, it covers every job that
// was due when it began. True for the call that begins it.
bool begin_queue_check(DatabaseState* database);

// The checks since the first look began have come to the last queue.
void end_first_look(DatabaseState* database);

// A scan of the parked jobs that became due.
struct FallenDueScan {
  uint64 seen_before;      // parked_seen when the scan began
  TimestampTz seen_until;  // the scan has seen all jobs due by then
};
FallenDueScan begin_fallen_due_scan(DatabaseState* database);
void end_fallen_due_scan(DatabaseState* database, const FallenDueScan& scan);

// Called at the end of a transaction and when a savepoint is rolled back. If not committed, the
// checks of this transaction are to be repeated. Cannot fail.
void end_queue_checks(bool is_committed);

}  // namespace pulse
