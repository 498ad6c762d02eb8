// The heartbeat of a worker, and the state in its heartbeat row.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Whether a call must beat for the worker: its last beat is older than half its interval. Never in
// a client's transaction block, because the worker's heartbeats would wait for the end of the
// block.
bool beat_is_due(TupleTableSlot* row);

// Whether a claim must beat: also when the row has another default_timeout than this session. The
// jobs of the claim run under that of its session, whatever role sweeps.
bool claim_beat_is_due(TupleTableSlot* row);

// The beat of a claim or a progress report, if `reason` says that one is due. It keeps the worker's
// attachment, because a worker may claim in another session than it beats in. It skips a row that
// another transaction has locked, and the row of a worker that has ended.
void beat_beside(int64 worker_id, bool (*reason)(TupleTableSlot* row) = beat_is_due);

// Whether the status in a heartbeat row is this one.
bool status_is(TupleTableSlot* beat, const char* expected);

}  // namespace pulse
