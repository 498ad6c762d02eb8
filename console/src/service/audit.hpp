// What the log keeps of requests: who changed something, who signed in or out, and who was refused.
#pragma once

#include "base/log/log.hpp"
#include "serve/request.hpp"

namespace pulse::console {

// Writes the line of an answered request; a request that only looked leaves none.
void write_audit(Log& log, const Request& request, unsigned status);

}  // namespace pulse::console
