// Waking the processes of the background worker. Each call touches shared memory only.
#pragma once

#include "server/shared_memory.hpp"

namespace pulse {

// Tells the background worker that something fell due earlier.
void wake_background(DatabaseState* database);

// Only the maintainer of a database, if there is one now.
void wake_maintainer(DatabaseState* database);

// Tells it that a database which it could not serve may have become one that it can.
void signal_launcher();

}  // namespace pulse
