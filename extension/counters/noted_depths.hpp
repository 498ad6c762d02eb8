// What a transaction changes of the depths of tasks and queues. The commit adds the changes; a
// rollback forgets them, and so does the rollback of a savepoint.
//
// Every write of pulse.job notes its row once: C code that writes rows directly (job/) calls this
// file; the triggers of pulse.job, which fire for statements only, call it for all other writes.
#pragma once

#include "counters/depths.hpp"
#include "server/postgres.hpp"

namespace pulse {

// One row of pulse.job, as far as depths need it.
struct DepthRow {
  Datum identifier;
  NullableDatum queue_name;
  Oid state;
  TimestampTz run_at;
};

DepthState depth_state(Oid state);
DepthRow depth_row(TupleTableSlot* row);

void note_added_job(const DepthRow& row);
void note_deleted_job(const DepthRow& row);
void note_changed_job(const DepthRow& before, const DepthRow& after);
// All rows are gone, uncounted.
void note_truncated_jobs();

// The depths with what this transaction changed itself. In one transaction all readings of a second
// are the same count, and at REPEATABLE READ all readings, so that two views do not contradict each
// other; a change of its own is seen at once.
DepthReadings read_depths_with_own();
// False also in a transaction that removed rows uncounted.
bool are_depths_known();

// Called at the end of the transaction or of a savepoint. None can fail.
void add_noted_depths();
void leave_noted_depths_to_prepared();
void forget_noted_depths();
void forget_noted_depths_since(SubTransactionId undone);

}  // namespace pulse
