// Tokens and worker ids: numbers that are never used twice, also across failover, restore and
// pg_upgrade. A number consists of the installation's epoch_base and the timeline, above 40 bits of
// a sequence.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The token of one claim call. Tokens of one job grow.
int64 next_token();

}  // namespace pulse
