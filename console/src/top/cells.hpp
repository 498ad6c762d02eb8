// The drawing of the screen: lines of cells, apart from any terminal.
#pragma once

#include <string>
#include <vector>

#include "output/style.hpp"

namespace pulse::console {

struct Cell {
  std::string text;  // inert
  Tint tint = Tint::none;
};

struct Line {
  std::vector<Cell> cells;
  bool is_selected = false;
};

struct Size {
  std::size_t rows = 0;
  std::size_t columns = 0;
};

// The text of a line without tints.
std::string line_text(const Line& line);

// The lines of a text; a text that a Style without colours has tinted has no tints.
std::vector<Line> lines_of(const std::string& text);

}  // namespace pulse::console
