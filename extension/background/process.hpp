// What the two kinds of process of the background worker have in common: the launcher, which no
// database sees, and the maintainers that it starts in databases for a moment.
#pragma once

#include "server/postgres.hpp"
#include "server/shared_memory.hpp"

namespace pulse {

// Called first in such a process: signals that end it, and that tell of changed settings.
void start_background_process();

// Lets others find this process in one of the fields below, until it ends.
void publish_process(pg_atomic_uint32* place);

// Sleeps until the latch is set or the time is up; ends the process when it is told to. True when
// the settings were read anew.
bool sleep_in_background(int64 wait_us);

// Whether somebody has locked a database against new sessions, or waits to: to drop, to copy, to
// rename it. Needs a transaction.
bool database_is_wanted(Oid database);

// How long until a sweep is due that was asked for: negative when it is late.
int64 sweep_due_in_us(DatabaseState* database);

}  // namespace pulse
