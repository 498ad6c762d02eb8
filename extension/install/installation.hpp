// Installation: identifies the installation that owns the jobs of this database. Owns the row of
// pulse.installation. The first token or worker id writes the row, and a dump contains the row. So
// a restored copy is recognised and does not run production's jobs again. Tokens and worker ids
// count from the row's epoch_base.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Writes the row at first use. Updates the row if the tables are the same but the server or the
// timeline differs: after pg_upgrade, a physical restore, a promotion. Either begins an epoch, and
// shifts the sequences of numbers. Called before the generation of a number; cached afterwards.
void record_installation();

// The epoch above the 40 bits of a sequence; valid only after record_installation().
int64 number_epoch();

// Raises PU008 in a copy before its adoption, and where a subscription writes the jobs.
void require_adopted();

}  // namespace pulse
