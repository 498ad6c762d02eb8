#include "base/text/percent.hpp"

#include <charconv>
#include <system_error>

#include "base/text/utf8.hpp"

namespace pulse {

std::optional<std::string> percent_decoded(std::string_view text, bool is_plus_a_blank) {
  std::string decoded;
  decoded.reserve(text.size());
  while (!text.empty()) {
    char c = text.front();
    text.remove_prefix(1);
    if (c == '+' && is_plus_a_blank) c = ' ';
    if (c == '%') {
      if (text.size() < 2) return std::nullopt;
      unsigned code = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + 2, code, 16);
      if (error != std::errc() || end != text.data() + 2) return std::nullopt;
      c = static_cast<char>(code);
      text.remove_prefix(2);
    }
    decoded += c;
  }
  if (!is_storable(decoded)) return std::nullopt;
  return decoded;
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  constexpr std::string_view kSafe =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string encoded;
  for (const char c : text) {
    if (kSafe.find(c) != std::string_view::npos) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kDigits[byte >> 4U];
    encoded += kDigits[byte & 15U];
  }
  return encoded;
}

}  // namespace pulse
