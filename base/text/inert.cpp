#include "base/text/inert.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/text/utf8.hpp"

namespace pulse {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// In order. C0, DEL and C1; characters that are invisible or change the direction of the text;
// separators of lines; variation selectors; noncharacters; tags. Private characters appear as a
// font likes.
constexpr std::array<Range, 20> kHidden{{
    {0x0000, 0x001F}, {0x007F, 0x009F}, {0x00AD, 0x00AD}, {0x034F, 0x034F}, {0x061C, 0x061C},
    {0x115F, 0x1160}, {0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x200B, 0x200F}, {0x2028, 0x202E},
    {0x2060, 0x206F}, {0x3164, 0x3164}, {0xE000, 0xF8FF}, {0xFDD0, 0xFDEF}, {0xFE00, 0xFE0F},
    {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0xFFFE, 0xFFFF}, {0x1D173, 0x1D17A},
}};
constexpr char32_t kFirstTag = 0xE0000;  // from here on tags, selectors and private characters

bool is_hidden(char32_t character) {
  if (character >= kFirstTag || (character & 0xFFFE) == 0xFFFE) return true;
  const auto* range =
      std::lower_bound(kHidden.begin(), kHidden.end(), character,
                       [](const Range& range, char32_t value) { return range.last < value; });
  return range != kHidden.end() && range->first <= character;
}

bool is_unseen(char32_t character) {
  return character == ' ' || character == 0xA0 || character == 0x1680 ||
         (character >= 0x2000 && character <= 0x200A) || character == 0x202F ||
         character == 0x205F || character == 0x3000;
}

void append_hex(std::string& text, std::uint32_t value, int digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  int length = digits;
  while (length < 8 && value >> (4 * length) != 0) ++length;
  for (int place = length - 1; place >= 0; --place) text += kDigits[(value >> (4 * place)) & 15];
}

void append_escape(std::string& text, char32_t character) {
  switch (character) {
    case '\n': text += "\\n"; return;
    case '\r': text += "\\r"; return;
    case '\t': text += "\\t"; return;
    default: break;
  }
  text += character < 0x100 ? "\\x" : "\\u{";
  append_hex(text, character, character < 0x100 ? 2 : 4);
  if (character >= 0x100) text += '}';
}

// Of a well-formed character of this length.
char32_t decode(std::string_view bytes) {
  if (bytes.size() == 1) return static_cast<unsigned char>(bytes[0]);
  char32_t character = static_cast<unsigned char>(bytes[0]) & (0x7FU >> bytes.size());
  for (const char byte : bytes.substr(1)) {
    character = character << 6 | (static_cast<unsigned char>(byte) & 0x3FU);
  }
  return character;
}

void append_json_escape(std::string& text, char32_t character) {
  constexpr char32_t kFirstPair = 0x10000;
  const auto append = [&](char32_t unit) {
    text += "\\u";
    append_hex(text, unit, 4);
  };
  if (character < kFirstPair) return append(character);
  append(0xD800 + ((character - kFirstPair) >> 10));
  append(0xDC00 + ((character - kFirstPair) & 0x3FF));
}

}  // namespace

std::string inert(std::string_view text, Lines lines) {
  std::string harmless;
  harmless.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_character_length(text);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(length, 1));
    text.remove_prefix(bytes.size());
    if (length == 0) {
      harmless += "\\x";
      append_hex(harmless, static_cast<unsigned char>(bytes[0]), 2);
      continue;
    }
    const char32_t character = decode(bytes);
    if (!is_hidden(character) || (character == '\n' && lines == Lines::kept)) {
      harmless += bytes;
    } else {
      append_escape(harmless, character);
    }
  }
  return harmless;
}

std::string visible(std::string_view text) {
  std::string spelled;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = utf8_character_length(rest);
    if (length == 0 || !is_unseen(decode(rest.substr(0, length)))) return std::string(text);
    append_escape(spelled, decode(rest.substr(0, length)));
    rest.remove_prefix(length);
  }
  return spelled;
}

// Below a blank there is only white space between values: JSON has no control character in a
// string.
std::string inert_json(std::string_view document) {
  std::string harmless;
  harmless.reserve(document.size());
  while (!document.empty()) {
    const std::size_t length = utf8_character_length(document);
    const std::string_view bytes = document.substr(0, std::max<std::size_t>(length, 1));
    document.remove_prefix(bytes.size());
    const char32_t character = length == 0 ? U'\uFFFD' : decode(bytes);
    if (length == 0 || (character > ' ' && is_hidden(character))) {
      append_json_escape(harmless, character);
    } else {
      harmless += bytes;
    }
  }
  return harmless;
}

}  // namespace pulse
