#include "output/record.hpp"

#include <algorithm>

#include "text/width.hpp"

namespace pulse::console {

std::size_t title_width(const Columns& columns) {
  std::size_t widest = 0;
  for (const Column& column : columns) widest = std::max(widest, width(column.title));
  return widest;
}

std::string record(const Columns& columns, const QueryResult::Row& row, const Style& style) {
  const std::size_t widest = title_width(columns);
  std::string text;
  for (const Column& column : columns) {
    const std::string value = shown(column, row);
    if (column.title.empty() || value.empty()) continue;
    const Tint tint = column.kind == Kind::state ? tint_of_state(value) : Tint::none;
    text +=
        style.tinted(pad(column.title, widest), Tint::strong) + "  " + style.tinted(value, tint);
    text += '\n';
  }
  return text;
}

}  // namespace pulse::console
