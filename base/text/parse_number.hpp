// Numbers that stand alone in a text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace pulse {

// The number that the whole text is; nothing when the text holds anything else.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace pulse
