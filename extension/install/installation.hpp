// Which installation the jobs of this database belong to. Its row is written at the first token or
// worker id and dumped with the jobs, so that a restored copy is recognised and production's jobs
// are not run twice; tokens and worker ids count from its epoch_base.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Writes the row at its first use, and brings it up to date where the server is another than the
// row says and the tables are the same: after pg_upgrade, a restore by file, a promotion. Called
// before a number is made; costs nothing once it is known.
void settle_installation();

// What goes above the 40 bits of a sequence; only after settle_installation().
int64 number_epoch();

// Raises PU008 in a copy that nobody has adopted.
void require_adopted();

}  // namespace pulse
