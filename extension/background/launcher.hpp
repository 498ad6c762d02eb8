// The launcher: the one process of the background worker that is always there. It is in no
// database, so it is in nobody's way; it starts a maintainer in each database of pulse.databases
// when something is due there.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Called from _PG_init while the server preloads libraries.
void register_launcher();

}  // namespace pulse
