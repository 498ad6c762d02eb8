// Names that mean the same in any case: of hosts, schemes, media types.
#pragma once

#include <string>
#include <string_view>

namespace pulse::console {

// With ASCII's capitals made small, whatever the locale says.
inline std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return small;
}

}  // namespace pulse::console
