#include "text/json_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace pulse {

void append_json_string(std::string& text, std::string_view value) {
  const bool is_plain = std::all_of(value.begin(), value.end(), [](char character) {
    return character >= ' ' && character <= '~' && character != '"' && character != '\\';
  });
  if (is_plain) {
    text += '"';
    text += value;
    text += '"';
  } else {
    text += nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
}

}  // namespace pulse
