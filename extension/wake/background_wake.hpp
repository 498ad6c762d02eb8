// Wakes the processes of the background worker. Each call touches shared memory only.
#pragma once

#include "server/shared_memory.hpp"

namespace pulse {

// Wakes the launcher and the database's maintainer, because work became due earlier.
void wake_background(DatabaseState* database);

// Wakes the database's maintainer, if one is running.
void wake_maintainer(DatabaseState* database);

// Wakes the launcher, because a database that it could not serve may have changed.
void signal_launcher();

}  // namespace pulse
