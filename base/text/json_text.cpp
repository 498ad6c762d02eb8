#include "base/text/json_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text/json_grammar.hpp"

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

std::optional<std::string> document_problem(std::string_view text) {
  if (text.size() > kMaxDocumentBytes) {
    return "it has " + std::to_string(text.size()) + " bytes, more than " +
           std::to_string(kMaxDocumentBytes);
  }
  // A reader of JSON may take a NUL for the end.
  if (text.find('\0') != std::string_view::npos) return "it has a NUL";
  if (!is_json(text)) return "it is no JSON";
  return std::nullopt;
}

}  // namespace pulse
