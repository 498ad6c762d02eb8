// Identifies the installation that owns the jobs of this database. The first token or worker id
// writes its row, and a dump contains the row. So a restored copy is recognised and does not run
// production's jobs again. Tokens and worker ids count from the row's epoch_base.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Writes the row at first use. Updates it if the tables are the same but the server or the timeline
// differs: after pg_upgrade, a physical restore, a promotion. Called before a number is generated;
// cached afterwards.
void record_installation();

// The epoch above the 40 bits of a sequence; valid only after record_installation().
int64 number_epoch();

// Raises PU008 in a copy that has not been adopted, and where a subscription writes the jobs.
void require_adopted();

}  // namespace pulse
