// The launcher: the permanent process of the background worker. It connects to no database, so it
// blocks no DROP or CREATE DATABASE. It starts a maintainer in a database of pulse.databases when
// work is due there.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Called from _PG_init while the server preloads libraries.
void register_launcher();

}  // namespace pulse
