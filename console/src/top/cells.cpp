#include "top/cells.hpp"

#include <string_view>

namespace pulse::console {

std::string line_text(const Line& line) {
  std::string text;
  for (const Cell& cell : line.cells) text += cell.text;
  return text;
}

std::vector<Line> lines_of(const std::string& text) {
  std::vector<Line> lines;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    lines.push_back({{{std::string(rest.substr(0, end)), Tint::none}}});
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return lines;
}

}  // namespace pulse::console
