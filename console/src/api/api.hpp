// The HTTP API: jobs and workers for clients without a driver of PostgreSQL.
#pragma once

#include "serve/router.hpp"

namespace pulse::console {

// `address`: the address of the server for its clients, where the operator gave one.
void add_api(Router& router, const std::string& address);

}  // namespace pulse::console
