// Attempts that a transaction starts and ends. The commit counts them; a transaction that rolls
// back, or ends with PREPARE TRANSACTION, counts none.
#pragma once

#include "counters/counters.hpp"
#include "server/postgres.hpp"

namespace pulse {

// Both take the row of the running job.
void note_start(TupleTableSlot* row);
void note_attempt_end(TupleTableSlot* row, AttemptEvent event, TimestampTz now);

// This transaction adds a minute to the table. Requires the advisory lock LockKind::kCounters.
void note_added_minute(int64 minute);

// Called at the end of the transaction or of a savepoint. None can fail.
void count_noted();
void forget_noted();
void forget_noted_since(SubTransactionId undone);

}  // namespace pulse
