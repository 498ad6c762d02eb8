// Common code of the background worker's processes: the launcher, which connects to no database,
// and the maintainers.
#pragma once

#include "server/postgres.hpp"
#include "server/shared_memory.hpp"

namespace pulse {

// Called first in such a process: installs the handlers of SIGTERM and SIGHUP.
void start_background_process();

// Publishes this process in a field of shared memory, until it ends.
void publish_process(pg_atomic_uint32* field);

// Sleeps until the latch is set or the time has passed; exits after SIGTERM. True when settings
// were reloaded.
bool sleep_in_background(int64 wait_us);

// True when another session holds or awaits a lock of the database that excludes new sessions: to
// drop, copy or rename it. Needs a transaction.
bool database_is_wanted(Oid database);

// Time until the requested sweep is due, in microseconds; negative when it is late.
int64 sweep_due_in_us(DatabaseState* database);

}  // namespace pulse
