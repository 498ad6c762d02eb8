// Queue marks: a queue mark says that a queue may have a job to promote. Owns `parked_seen` and
// `first_check` of DatabaseState.
//
// Invariants:
// - Both are atomics.
// - Every parked job due before `parked_seen` has set its queue mark, unless the check of all
//   queues after a start is still to come.
// - The undo of a check moves `parked_seen` back to the value before the check.
#pragma once

#include "shared/memory.hpp"

namespace pulse {

// True until sessions have checked all queues since this database took its database entry.
bool is_first_check_due();

// The caller is about to check queues. As long as the first check lasts, it covers every job due
// when it began. True for the call that begins it.
bool begin_queue_check(DatabaseState* database);

// Ends the first check, which has come to the last queue.
void end_first_check(DatabaseState* database);

// A scan of the parked jobs that became due.
struct FallenDueScan {
  uint64 seen_before;      // parked_seen when the scan began
  TimestampTz seen_until;  // the scan has seen all jobs due by then
};
FallenDueScan begin_fallen_due_scan(DatabaseState* database);
void end_fallen_due_scan(DatabaseState* database, const FallenDueScan& scan);

// Ends the checks of this transaction. Called at the end of a transaction and when a savepoint is
// rolled back. If not committed, the checks of this transaction are to be repeated. Cannot fail.
void end_queue_checks(bool is_committed);

}  // namespace pulse
