#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Whether a call has to beat: the last beat of this heartbeat row is older than half the worker's
// interval. Not in a client's block, because the worker's heartbeats would wait for its end.
bool beat_is_due(TupleTableSlot* row);

// The beat of a claim or a progress report, where one is due. It leaves the worker's attachment
// alone, because a worker may claim in another session than it beats in. It steps over a row that
// another transaction holds, and does nothing for a worker that has ended.
void beat_beside(int64 worker_id);

// Whether a heartbeat row says this of its worker.
bool status_is(TupleTableSlot* beat, const char* expected);

}  // namespace pulse
