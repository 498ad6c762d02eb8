#include "text/width.hpp"

#include <clocale>
#include <cwchar>

#include "base/text/utf8.hpp"

namespace pulse::console {
namespace {

// wcwidth() asks the locale; the program sets a locale of UTF-8 when it starts.
std::size_t character_width(std::string_view character) {
  if (character.size() == 1) return 1;
  std::mbstate_t state{};
  wchar_t wide = 0;
  const std::size_t read = std::mbrtowc(&wide, character.data(), character.size(), &state);
  if (read != character.size()) return 1;
  const int columns = wcwidth(wide);
  return columns < 0 ? 1 : static_cast<std::size_t>(columns);
}

std::string_view take_character(std::string_view& text) {
  const std::size_t length = utf8_character_length(text);
  const std::string_view character = text.substr(0, length == 0 ? 1 : length);
  text.remove_prefix(character.size());
  return character;
}

}  // namespace

std::size_t width(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) columns += character_width(take_character(text));
  return columns;
}

std::string fit(std::string_view text, std::size_t columns) {
  if (text.size() <= columns || width(text) <= columns) return std::string(text);
  const std::string_view whole = text;
  std::size_t taken = 0;
  while (!text.empty()) {
    std::string_view rest = text;
    const std::size_t next = character_width(take_character(rest));
    if (taken + next + 1 > columns) break;
    taken += next;
    text = rest;
  }
  return std::string(whole.substr(0, whole.size() - text.size())) + "…";
}

std::string pad(std::string text, std::size_t columns) {
  const std::size_t has = width(text);
  if (has < columns) text.append(columns - has, ' ');
  return text;
}

std::string pad_before(const std::string& text, std::size_t columns) {
  const std::size_t has = width(text);
  return has < columns ? std::string(columns - has, ' ') + text : text;
}

}  // namespace pulse::console
