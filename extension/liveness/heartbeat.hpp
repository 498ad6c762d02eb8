// Liveness: the heartbeat of a worker, and the state in its heartbeat row.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Whether a call must beat for the worker, because the last beat is older than half the interval.
// Never in a client's transaction block, because the worker's heartbeats would wait for the end of
// the block.
bool beat_is_due(TupleTableSlot* row);

// Whether a claim must beat: also when the row has another default_timeout than this session. The
// jobs of the claim run under the default_timeout of the claiming session, whatever role sweeps.
bool claim_beat_is_due(TupleTableSlot* row);

// The beat of a claim or a progress report, if `reason` holds for the row. The beat keeps the
// worker's attachment, because a worker may claim in one session and send heartbeats in another
// session. The beat skips a row that another transaction has locked, and the row of a worker that
// has ended.
void beat_beside(int64 worker_id, bool (*reason)(TupleTableSlot* row) = beat_is_due);

// Notes what this session sees of pulse.task: a later beat tells the worker of each change that the
// snapshot does not show.
void note_seen_tasks(Snapshot snapshot);

// Whether a heartbeat row has the expected status.
bool status_is(TupleTableSlot* beat, const char* expected);

}  // namespace pulse
