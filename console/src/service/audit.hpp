// Requests in the log: changes, with the client that made the change, sign-ins and sign-outs, and
// refusals.
#pragma once

#include "base/log/log.hpp"
#include "serve/request.hpp"

namespace pulse::console {

// Writes the line of an answered request; a request that only read leaves none.
void write_audit(Log& log, const Request& request, unsigned status);

}  // namespace pulse::console
