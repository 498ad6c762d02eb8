// Ids of jobs, workers, flows and operations, as clients and users write them.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/text/parse_number.hpp"

namespace pulse::console {

// Digits that 64 bits hold.
inline bool is_id_text(std::string_view text) {
  const auto number = parse_number<std::int64_t>(text);
  return number && *number > 0;
}

}  // namespace pulse::console
