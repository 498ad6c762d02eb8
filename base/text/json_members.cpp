#include "base/text/json_members.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text/json_grammar.hpp"

namespace pulse {
namespace {

// Of the string that begins there, with both quotes.
std::size_t string_length(std::string_view text, std::size_t from) {
  std::size_t end = from + 1;
  while (text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  return end + 1 - from;
}

// How many brackets stand within each other, and where the outermost one closes.
struct Nesting {
  std::size_t deepest = 0;
  std::size_t length = 0;
};

Nesting nesting_of(std::string_view text) {
  Nesting nesting;
  std::size_t depth = 0;
  do {
    const char character = text[nesting.length];
    if (character == '{' || character == '[') nesting.deepest = std::max(nesting.deepest, ++depth);
    if (character == '}' || character == ']') --depth;
    nesting.length += character == '"' ? string_length(text, nesting.length) : 1;
  } while (depth > 0);
  return nesting;
}

}  // namespace

bool is_json_object(std::string_view text, std::size_t max_depth) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{') return false;
  if (!is_json(text)) return false;
  return nesting_of(text.substr(begin)).deepest <= max_depth;
}

JsonMembers::JsonMembers(std::string_view object) : rest_(object.substr(object.find('{') + 1)) {}

bool JsonMembers::next(std::string_view& key, std::string_view& value) {
  skip_separators();
  if (rest_.front() == '}') return false;
  key = take(string_length(rest_, 0));
  key = key.substr(1, key.size() - 2);
  skip_separators();
  value = take(value_length());
  return true;
}

void JsonMembers::skip_separators() { rest_.remove_prefix(rest_.find_first_not_of(",: \t\r\n")); }

std::string_view JsonMembers::take(std::size_t length) {
  const std::string_view taken = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return taken;
}

std::size_t JsonMembers::value_length() const {
  if (rest_.front() == '"') return string_length(rest_, 0);
  if (rest_.front() == '{' || rest_.front() == '[') return nesting_of(rest_).length;
  return std::min(rest_.find_first_of(",} \t\r\n"), rest_.size());
}

std::string json_string_value(std::string_view text) {
  const auto value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_string() ? value.get<std::string>() : std::string(text);
}

}  // namespace pulse
