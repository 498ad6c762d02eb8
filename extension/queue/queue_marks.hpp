// Shared memory about queues: the queue marks, parked_seen and reconciled_at of DatabaseState. A
// mark says that a queue may have something to promote.
#pragma once

#include "server/shared_memory.hpp"

namespace pulse {

// True when no session has checked all queues since this database took its place in shared memory.
bool is_look_at_all_due();

void mark_queue(DatabaseState* database, int slot);

// Records that the caller is about to check all queues, hence every job due by this moment.
void record_full_check(DatabaseState* database);

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
