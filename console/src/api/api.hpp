// The HTTP API: jobs and workers for clients without a driver of PostgreSQL.
#pragma once

#include "serve/router.hpp"

namespace pulse::console {

// `address`: of the server for its clients, where it was given one.
void add_api(Router& router, const std::string& address);

}  // namespace pulse::console
