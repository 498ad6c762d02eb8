// What kind of transaction a call runs in.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Whether the client opened this transaction block: then nothing commits with the call.
bool in_client_block();

// Warns there that this call counts only once the block commits.
void warn_in_block(const char* what);

}  // namespace pulse
