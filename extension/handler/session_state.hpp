// Handlers: the traces that a job leaves in its session beyond its transaction. The caller of the
// handler rolls settings back; this file takes back all other traces. The state of the session
// before the job stays.
//
// Invariants:
// - At most one job is noted at a time. A handler that performs another job makes both one job.
// - Statements, channels and cursors are noted by name when the job creates them. Advisory locks,
//   temporary objects and numbers of sequences can be found only afterwards.
// - After an error, the end of the transaction or savepoint takes back the traces that no rollback
//   takes back.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Called once, from _PG_init.
void watch_session_state();

// Begins a job. False within another job, whose end takes back all traces.
bool begin_session_state();

// Takes back the traces of the job. May raise.
void end_session_state();

// The savepoint, or with TopSubTransactionId the transaction, is rolled back. Cannot raise.
void abort_session_state(SubTransactionId undone);

// The transaction is committed, which frees the memory of the notes. Cannot raise.
void forget_session_state();

}  // namespace pulse
