#include "output/table.hpp"

#include <algorithm>

#include "text/width.hpp"

namespace pulse::console {
namespace {

// A column of the table with all texts of the column.
struct ShownColumn {
  const Column* column;
  std::vector<std::string> texts;
  std::size_t width;
};

constexpr std::size_t kGap = 2;
constexpr std::size_t kMinColumnWidth = 6;  // of a column whose texts are cut

bool is_right_aligned(Kind kind) {
  return kind == Kind::id || kind == Kind::count || kind == Kind::number || kind == Kind::seconds;
}

std::vector<ShownColumn> shown_columns(const Columns& columns, const QueryResult& rows) {
  std::vector<ShownColumn> result;
  for (const Column& column : columns) {
    if (column.title.empty()) continue;
    ShownColumn shown_column{&column, {}, width(column.title)};
    bool has_value = false;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      shown_column.texts.push_back(fit(shown(column, rows[i]), column.max_width));
      has_value = has_value || !shown_column.texts.back().empty();
      shown_column.width = std::max(shown_column.width, width(shown_column.texts.back()));
    }
    if (has_value || rows.empty()) result.push_back(std::move(shown_column));
  }
  return result;
}

// Takes columns from the widest texts, until the line fits or nothing more can be taken.
void narrow(std::vector<ShownColumn>& columns, std::size_t limit) {
  std::size_t total = 0;
  for (const ShownColumn& column : columns) total += column.width + kGap;
  while (limit > 0 && total > limit + kGap) {
    ShownColumn* widest = nullptr;
    for (ShownColumn& column : columns) {
      if (is_right_aligned(column.column->kind) || column.column->kind == Kind::time) continue;
      if (column.width > kMinColumnWidth && (widest == nullptr || column.width > widest->width)) {
        widest = &column;
      }
    }
    if (widest == nullptr) return;
    --widest->width;
    --total;
  }
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string aligned(const ShownColumn& column, std::string text) {
  text = fit(text, column.width);
  return is_right_aligned(column.column->kind) ? pad_before(text, column.width)
                                               : pad(std::move(text), column.width);
}

Tint tint_of(const Column& column, const std::string& text) {
  return column.kind == Kind::state ? tint_of_state(text) : Tint::none;
}

}  // namespace

std::string table(const Columns& columns, const QueryResult& rows, const Style& style) {
  std::vector<ShownColumn> shown_here = shown_columns(columns, rows);
  narrow(shown_here, style.columns);
  const std::string gap(kGap, ' ');
  std::string titles;
  for (const ShownColumn& column : shown_here)
    titles += aligned(column, column.column->title) + gap;
  std::string text = style.tinted(without_trailing_spaces(titles), Tint::strong) + '\n';
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string line;
    for (const ShownColumn& column : shown_here) {
      const Tint tint = tint_of(*column.column, column.texts[i]);
      line += style.tinted(aligned(column, column.texts[i]), tint) + gap;
    }
    text += without_trailing_spaces(std::move(line)) + '\n';
  }
  return text;
}

std::string json_list(const Columns& columns, const QueryResult& rows) {
  std::string text = "[";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += i == 0 ? "\n " : ",\n ";
    text += json_of(columns, rows[i]);
  }
  return text + (rows.empty() ? "]\n" : "\n]\n");
}

}  // namespace pulse::console
