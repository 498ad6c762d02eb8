// JSON5 (https://spec.json5.org) as JSON: comments, unquoted keys, single quotes, trailing commas,
// hexadecimal numbers and free signs and points.
#pragma once

#include <string>
#include <string_view>
#include <variant>

namespace pulse {

struct JsonText {
  std::string text;
};

// The same value as JSON; else the fault. Infinity and NaN are refused, because JSON has neither.
std::variant<JsonText, std::string> json_of_json5(std::string_view text);

}  // namespace pulse
