// What a job leaves in its session beyond its transaction: settings are rolled back by whoever
// calls the handler, everything else is taken back here. What the session had before the job stays.
//
// - At most one job is noted at a time. A handler that performs another job makes them one.
// - Statements, channels and cursors are noted by name as the job makes them. Advisory locks,
//   temporary objects and numbers of sequences can be asked for only afterwards.
// - After an error, the end of the transaction or savepoint takes back what no rollback does.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Called once, from _PG_init.
void watch_session_state();

// False within another job, whose end takes everything back.
bool begin_session_state();

// Takes back what the job has left. May raise.
void end_session_state();

// The savepoint, or with TopSubTransactionId the transaction, is rolled back. Cannot raise.
void abort_session_state(SubTransactionId undone);

// The transaction is committed, and with it goes the memory of what was noted. Cannot raise.
void forget_session_state();

}  // namespace pulse
