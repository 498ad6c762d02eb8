// Stderr tail: the end of a task's output on stderr, fit to be stored as text in the database.
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

  // The last part in at most `limit` bytes (at least the bytes of "…") of valid UTF-8: each byte
  // outside of a character, and each NUL, became U+FFFD; white space at the end is cut; when bytes
  // are missing before, the text begins with "…".
  [[nodiscard]] std::string text(std::size_t limit = kMaxBytes) const;

 private:
  std::string bytes_;
  bool is_cut_ = false;
};

// The text that the database stores of an error of any length: the last 8 kB, as above.
std::string storable_text(std::string_view error);
// The first bytes of `text` that the database stores, at most `limit`.
std::string storable_head(std::string_view text, std::size_t limit);

}  // namespace pulse
