// Terminal: the ways in which the log may use a terminal, if the log goes to a terminal.
#pragma once

#include <functional>
#include <string>

#include "base/log/log.hpp"

namespace pulse {

struct Terminal {
  bool is_there = false;  // the log goes to a terminal
  std::string kind;       // TERM: empty or `dumb` for terminals that know no sequences
  std::string no_color;   // NO_COLOR: not empty where the operator wants no colours
  int descriptor = -1;

  using Variable = std::function<const char*(const char* name)>;
  static Terminal detect(int descriptor, const Variable& variable);

  // Lines in JSON are for programs, and get no colours, on a terminal neither.
  bool takes_colour(LogFormat format) const;
  bool takes_rewriting(LogFormat format) const;
  // Characters in a line, now: people resize windows.
  int columns() const;

 private:
  bool knows_sequences() const { return is_there && !kind.empty() && kind != "dumb"; }
};

}  // namespace pulse
