#include "base/text/stderr_tail.hpp"

#include "base/text/utf8.hpp"

namespace pulse {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

// Only the first bytes of a character are missing when a tail begins in the middle of the
// character.
std::string_view without_torn_character(std::string_view bytes) {
  constexpr std::size_t kMaxContinuations = 3;
  std::size_t begin = 0;
  while (begin < bytes.size() && begin < kMaxContinuations &&
         (static_cast<unsigned char>(bytes[begin]) & 0xC0U) == 0x80U) {
    ++begin;
  }
  return bytes.substr(begin);
}

std::string to_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = utf8_character_length(bytes);
    const bool is_storable = length > 0 && bytes.front() != '\0';
    text += is_storable ? bytes.substr(0, length) : kReplacement;
    bytes.remove_prefix(is_storable ? length : 1);
  }
  return text;
}

}  // namespace

void StderrTail::feed(std::string_view bytes) {
  if (bytes.size() > kMaxBytes) {
    is_cut_ = true;
    bytes_.clear();
    bytes.remove_prefix(bytes.size() - kMaxBytes);
  }
  bytes_ += bytes;
  // Cutting only at twice the size moves each byte once at most.
  if (bytes_.size() > 2 * kMaxBytes) {
    is_cut_ = true;
    bytes_.erase(0, bytes_.size() - kMaxBytes);
  }
}

std::string StderrTail::text(std::size_t limit) const {
  std::string_view bytes = bytes_;
  const std::size_t end = bytes.find_last_not_of(" \t\r\n");
  bytes = bytes.substr(0, end == std::string_view::npos ? 0 : end + 1);
  std::string whole = to_utf8(is_cut_ ? without_torn_character(bytes) : bytes);
  if (whole.size() <= limit && (!is_cut_ || whole.empty())) return whole;
  std::string cut(kEllipsis);
  cut += utf8_suffix(whole, limit - kEllipsis.size());
  return cut;
}

std::string storable_text(std::string_view error) {
  StderrTail tail;
  tail.feed(error);
  return tail.text();
}

std::string storable_head(std::string_view text, std::size_t limit) {
  constexpr std::size_t kMaxCharacterBytes = 4;
  const std::string whole = to_utf8(text.substr(0, limit + kMaxCharacterBytes));
  return std::string(utf8_prefix(whole, limit));
}

}  // namespace pulse
