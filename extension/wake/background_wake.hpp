// Work for the background worker. Each call touches shared memory only.
#pragma once

#include "server/shared_memory.hpp"

namespace pulse {

// Requests a sweep of the database at that time: from the background worker first, else from a
// waiter.
void request_sweep(DatabaseState* database, TimestampTz at);

void wake_launcher();

// Wakes the launcher, because a database that it could not serve may have changed.
void signal_launcher();

}  // namespace pulse
