#include "text/telling_line.hpp"

#include <algorithm>

namespace pulse::console {
namespace {

std::string_view without_space_behind(std::string_view line) {
  const std::size_t last = line.find_last_not_of(" \t\r");
  return last == std::string_view::npos ? std::string_view() : line.substr(0, last + 1);
}

}  // namespace

std::string telling_line(std::string_view error) {
  std::string_view telling;
  std::string_view last;
  for (std::size_t from = 0; from <= error.size();) {
    const std::size_t to = std::min(error.find('\n', from), error.size());
    const std::string_view line = without_space_behind(error.substr(from, to - from));
    if (!line.empty()) {
      last = line;
      if (line[0] != ' ' && line[0] != '\t') telling = line;
    }
    from = to + 1;
  }
  return std::string(telling.empty() ? last : telling);
}

}  // namespace pulse::console
