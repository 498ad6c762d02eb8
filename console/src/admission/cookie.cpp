#include "admission/cookie.hpp"

#include <algorithm>

namespace pulse::console {

std::string cookie_value(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    std::string_view entry = header.substr(0, header.find(';'));
    header.remove_prefix(std::min(header.size(), entry.size() + 1));
    entry.remove_prefix(std::min(entry.find_first_not_of(' '), entry.size()));
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || entry.substr(0, equals) != name) continue;
    return std::string(entry.substr(equals + 1));
  }
  return {};
}

}  // namespace pulse::console
