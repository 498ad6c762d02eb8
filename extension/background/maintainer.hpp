// A maintainer: the process that sweeps, promotes and prunes in one database. It ends within half a
// second when somebody has to have the database for himself, at once when the settings are read
// anew, and after half a minute at the latest; where databases are many and processes few, when
// nothing falls due soon, and after two seconds. The launcher starts the next one.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Asks the server for a maintainer of this database, and to be told when it ends. NULL when no
// process is free.
BackgroundWorkerHandle* start_maintainer(Oid database, const char* name);

}  // namespace pulse
