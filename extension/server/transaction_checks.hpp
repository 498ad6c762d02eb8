// Checks of the transaction in which a call runs.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// True when the client opened a transaction block, so that the call's work is not committed with
// it.
bool in_client_block();

// Warns there that this call counts only once the block commits.
void warn_in_block(const char* what);

}  // namespace pulse
