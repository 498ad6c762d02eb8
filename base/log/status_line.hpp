// The last line of a terminal, rewritten in place below lines that stay.
#pragma once

#include <string>
#include <string_view>

namespace pulse {

class StatusLine {
 public:
  // The bytes to write so that complete `lines` stand above a last line of this text; no text: no
  // last line.
  std::string write(std::string_view lines, std::string text);

 private:
  std::string shown_;
};

}  // namespace pulse
