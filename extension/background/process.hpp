// The processes of the background worker. The launcher is permanent and connects to no database, so
// it blocks no DROP or CREATE DATABASE. It starts a maintainer in a database of pulse.databases
// when work is due there. A session or a sweep starts a recounter, which counts the jobs of one
// database and ends (recounter.cpp).
#pragma once

#include "server/postgres.hpp"
#include "shared/memory.hpp"

namespace pulse {

// Called from _PG_init while the server preloads libraries.
void register_launcher();

// The value of the setting pulse.background_sweeps.
extern "C" const char* pulse_show_background_sweeps();

// Called first in a background process: installs the handlers of SIGTERM and SIGHUP.
void start_background_process();

// Publishes this process in a field of shared memory, until it ends.
void publish_process(pg_atomic_uint32* field);

// Publishes this process unless another is published in the field.
bool try_publish_process(pg_atomic_uint32* field);

// Sleeps until the latch is set or the time has passed; exits after SIGTERM. True when settings
// were reloaded.
bool sleep_in_background(int64 wait_us);

// True when another session holds or awaits a lock of the database that excludes new sessions: to
// drop, copy or rename the database. Needs a transaction.
bool database_is_wanted(Oid database);

// Time until the requested sweep is due, in microseconds; negative when the sweep is late.
int64 sweep_due_in_us(DatabaseState* database);

}  // namespace pulse
