// Numbers that are never given twice, also across failover, restore and pg_upgrade:
// the installation's epoch_base and the timeline above 40 bits of sequence.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Names one claim call; grows per job.
int64 next_token();

}  // namespace pulse
