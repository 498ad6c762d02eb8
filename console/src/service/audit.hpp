// Requests in the log: changes, with the client that made the change, sign-ins and sign-outs, and
// refusals.
#pragma once

#include <optional>
#include <string>

#include "base/log/log.hpp"
#include "serve/request.hpp"

namespace pulse::console {

// The field `database` of the log's lines about a node; absent for a server of one database.
std::optional<std::string> name_in_log(const std::string& node);

// Writes the line of an answered request; a request that only read leaves none.
void write_audit(Log& log, const Request& request, unsigned status);

}  // namespace pulse::console
