#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The beat that a claim makes where one is due. Steps over a row that a sweep holds, because a
// claim waits for nobody; does nothing for a worker that is no longer alive.
void beat_beside_claim(int64 worker_id);

// Whether a heartbeat row says this of its worker.
bool status_is(TupleTableSlot* beat, const char* expected);

}  // namespace pulse
