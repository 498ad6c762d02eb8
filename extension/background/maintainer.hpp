// A maintainer: the process that sweeps, promotes and prunes in one database. It ends:
// - within half a second when another session needs the database alone;
// - at once when settings are reloaded;
// - after 30 seconds at the latest;
// - where databases outnumber processes: after 2 seconds, or when nothing is due soon.
//
// The launcher starts the next one.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Starts a maintainer of this database; the server signals this process when it ends. NULL when no
// worker slot is free.
BackgroundWorkerHandle* start_maintainer(Oid database, const char* name);

}  // namespace pulse
