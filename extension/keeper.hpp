// A keeper: the process that sweeps, promotes and prunes in one database. It lives for a moment
// only, so that whoever has to have the database for himself need not wait: it ends when nothing
// falls due soon, when somebody wants the database, and after two seconds at the latest. The
// launcher starts the next one.
#pragma once

#include "prelude.hpp"

namespace pulse {

// Asks the server for a keeper of this database, and to be told when it ends. NULL when no process
// is free.
BackgroundWorkerHandle* start_keeper(Oid database, const char* name);

}  // namespace pulse
