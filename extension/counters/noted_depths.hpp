// The changes of a transaction to the depths of tasks and queues. The commit adds them; a rollback
// forgets them, and so does the rollback of a savepoint.
//
// Every write of pulse.job notes its row once: C code that writes rows directly (job/) calls this
// file; for all other writes the triggers of pulse.job call it, and they fire for statements only.
#pragma once

#include "counters/depths.hpp"
#include "server/postgres.hpp"

namespace pulse {

// One row of pulse.job, with the columns that depths need.
struct DepthRow {
  Datum identifier;
  NullableDatum queue_name;
  Oid state;
  TimestampTz run_at;
  bool is_after_others;  // a parked job waits for other jobs
};

DepthState depth_state(const DepthRow& row);
DepthRow depth_row(TupleTableSlot* row);

void note_added_job(const DepthRow& row);
void note_deleted_job(const DepthRow& row);
void note_changed_job(const DepthRow& before, const DepthRow& after);
// All rows are gone, uncounted.
void note_truncated_jobs();

// The depths with the changes of this transaction. In one transaction all readings of a second are
// the same count, and at REPEATABLE READ all readings, so that two views do not contradict each
// other; a reading shows a change of the transaction itself at once.
DepthReadings read_depths_with_own();
// False also in a transaction that removed rows uncounted.
bool are_depths_known();

// Called at the end of the transaction or of a savepoint. None can fail.
void add_noted_depths();
void leave_noted_depths_to_prepared();
void forget_noted_depths();
void forget_noted_depths_since(SubTransactionId undone);

}  // namespace pulse
