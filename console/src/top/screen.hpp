// The terminal as a full screen, as long as the object lives.
#pragma once

#include <stdexcept>

#include "base/loop/duration.hpp"
#include "top/cells.hpp"

namespace pulse::console {

// TERM names no known terminal, or one whose cursor cannot move.
struct NoScreen : std::runtime_error {
  using runtime_error::runtime_error;
};

class Screen {
 public:
  // Throws NoScreen.
  explicit Screen(bool has_colours);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  Size size() const;
  void paint(const std::vector<Line>& lines);

  // Keys that are no characters.
  enum Key { none = -1, up = 0x110000, down, page_up, page_down, home, end, enter, escape, erase };
  // The next key within this time: a character's code, or a Key.
  int key(Duration max_wait);
  // Whether the terminal is still open. On a closed one, key() returns none at once.
  static bool is_there();

 private:
  bool has_colours_;
};

}  // namespace pulse::console
