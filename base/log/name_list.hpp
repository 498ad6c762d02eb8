// Many names in one field of a line of the log.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace pulse {

// The first names, and how many more there are; nothing for no name.
std::optional<std::string> name_list(const std::vector<std::string>& names);

}  // namespace pulse
