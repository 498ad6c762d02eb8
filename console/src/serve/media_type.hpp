// The media type of the body of a request.
#pragma once

#include <string>

#include "serve/request.hpp"

namespace pulse::console {

// In lower case, without parameters.
std::string media_type_of(const Request& request);

}  // namespace pulse::console
