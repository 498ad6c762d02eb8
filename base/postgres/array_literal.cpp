#include "base/postgres/array_literal.hpp"

namespace pulse {
namespace {

void append_quoted(std::string& literal, const std::string& element) {
  literal += '"';
  for (const char c : element) {
    if (c == '"' || c == '\\') literal += '\\';
    literal += c;
  }
  literal += '"';
}

template <typename Elements, typename Append>
std::string literal_of(const Elements& elements, Append append) {
  std::string literal = "{";
  for (const auto& element : elements) {
    if (literal.size() > 1) literal += ',';
    append(literal, element);
  }
  literal += '}';
  return literal;
}

}  // namespace

std::string array_literal(std::span<const std::optional<std::string>> elements) {
  return literal_of(elements, [](std::string& literal, const std::optional<std::string>& element) {
    if (element) {
      append_quoted(literal, *element);
    } else {
      literal += "NULL";
    }
  });
}

std::string array_literal(std::span<const std::string> elements) {
  return literal_of(elements, append_quoted);
}

std::string array_literal(std::span<const std::int64_t> elements) {
  return literal_of(elements, [](std::string& literal, std::int64_t element) {
    literal += std::to_string(element);
  });
}

std::string array_literal(const std::vector<bool>& elements) {
  return literal_of(elements,
                    [](std::string& literal, bool element) { literal += element ? 't' : 'f'; });
}

}  // namespace pulse
