#include "pages/pages.hpp"

namespace pulse::console {

void add_pages(Router& /*router*/) {}

}  // namespace pulse::console
