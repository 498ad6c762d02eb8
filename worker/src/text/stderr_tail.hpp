// The end of what a task wrote to stderr, fit to be stored as text in the database.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pulse {

class StderrTail {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{8} * 1024;

  // Takes the next bytes, of any length, cut anywhere. Keeps at most 2 × kMaxBytes.
  void feed(std::string_view bytes);

  // The last of it in at most `limit` bytes (which must hold the mark) of valid UTF-8: each byte
  // that is not part of a character, and each NUL, became U+FFFD; white space at the end is cut;
  // when something is missing before, it begins with "…".
  [[nodiscard]] std::string text(std::size_t limit = kMaxBytes) const;

 private:
  std::string bytes_;
  bool is_cut_ = false;
};

// The text that the database stores of an error of any length: its last 8 kB, as above.
std::string storable_text(std::string_view error);
// The first bytes of `text` that the database stores, at most `limit`.
std::string storable_head(std::string_view text, std::size_t limit);

}  // namespace pulse
