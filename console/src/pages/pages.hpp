// What a browser sees.
#pragma once

#include "serve/router.hpp"

namespace pulse::console {

void add_pages(Router& router);

}  // namespace pulse::console
