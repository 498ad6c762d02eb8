// From what came over the wire to what handlers read.
#pragma once

#include "serve/request.hpp"

namespace pulse::console {

// Throws Failed for what cannot be understood.
Request read_request(HttpRequest http);

}  // namespace pulse::console
