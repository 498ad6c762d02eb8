// Checks of the transaction in which a call runs.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Warns in a transaction block of the client that this call counts only once the block commits.
void warn_in_block(const char* what);

}  // namespace pulse
