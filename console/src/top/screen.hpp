// The terminal as a whole screen, while it stands.
#pragma once

#include <stdexcept>

#include "loop/duration.hpp"
#include "top/cells.hpp"

namespace pulse::console {

// TERM names no terminal that is known, or one whose cursor cannot be moved.
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

  // The keys that are no characters.
  enum Key { none = -1, up = 0x110000, down, page_up, page_down, home, end, enter, escape, erase };
  // The next key within this time; characters are themselves, others are spelled by Key.
  int key(Duration max_wait);
  // Whether its terminal is there: of one that was closed, each key comes at once and is none.
  static bool is_there();

 private:
  bool has_colours_;
};

}  // namespace pulse::console
