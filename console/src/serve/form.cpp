#include "serve/form.hpp"

#include <algorithm>

#include "text/utf8.hpp"

namespace pulse::console {
namespace {

constexpr std::size_t kMaxEntries = 1'000;

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_character_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// Where PostgreSQL could not store it, it is no text.
std::optional<std::string> decode_text(std::string_view text, bool is_plus_a_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == '+' && is_plus_a_space) c = ' ';
    if (c == '%') {
      if (at + 2 >= text.size()) return std::nullopt;
      const int high = digit_of(text[at + 1]);
      const int low = digit_of(text[at + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      at += 2;
    }
    if (c == '\0') return std::nullopt;
    decoded += c;
  }
  if (!is_utf8(decoded)) return std::nullopt;
  return decoded;
}

}  // namespace

const std::string& Form::get(std::string_view name) const {
  static const std::string kNone;
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  return found == entries_.end() ? kNone : found->second;
}

std::optional<std::string> Form::find(std::string_view name) const {
  for (const auto& [key, value] : entries_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::vector<std::string> Form::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : entries_) {
    if (key == name) values.push_back(value);
  }
  return values;
}

void Form::add(std::string name, std::string value) {
  entries_.emplace_back(std::move(name), std::move(value));
}

std::optional<Form> parse_form(std::string_view text) {
  Form form;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    if (entry.empty()) continue;
    const std::size_t equals = std::min(entry.find('='), entry.size());
    auto name = decode_text(entry.substr(0, equals), true);
    auto value = decode_text(entry.substr(std::min(equals + 1, entry.size())), true);
    if (!name || !value || form.entries().size() == kMaxEntries) return std::nullopt;
    form.add(std::move(*name), std::move(*value));
  }
  return form;
}

std::optional<std::string> decode_part(std::string_view text) { return decode_text(text, false); }

std::string encode_part(std::string_view text) {
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

}  // namespace pulse::console
