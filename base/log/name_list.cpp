#include "base/log/name_list.hpp"

#include <algorithm>

namespace pulse {
namespace {

constexpr std::size_t kMaxNamed = 20;

}  // namespace

std::optional<std::string> name_list(const std::vector<std::string>& names) {
  if (names.empty()) return std::nullopt;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNamed); ++i)
    text += (i == 0 ? "" : " ") + names[i];
  if (names.size() > kMaxNamed)
    text += " and " + std::to_string(names.size() - kMaxNamed) + " more";
  return text;
}

}  // namespace pulse
