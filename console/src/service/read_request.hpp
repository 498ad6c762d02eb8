// From the bytes of the client to the request that handlers read.
#pragma once

#include "serve/request.hpp"

namespace pulse::console {

// Throws Failed for bytes that are no valid request.
Request read_request(HttpRequest http);

}  // namespace pulse::console
