// The HTTP API: jobs and workers for clients without a driver of PostgreSQL.
#pragma once

#include "serve/router.hpp"

namespace pulse::console {

void add_api(Router& router);

}  // namespace pulse::console
