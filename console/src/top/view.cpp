#include "top/view.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/text/inert.hpp"
#include "output/partial_count.hpp"
#include "text/spelling.hpp"
#include "text/width.hpp"

namespace pulse::console {
namespace {

bool is_number(Kind kind) {
  return kind == Kind::id || kind == Kind::count || kind == Kind::number || kind == Kind::part ||
         kind == Kind::seconds;
}

std::string lower_case(std::string text) {
  for (char& letter : text) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return text;
}

bool passes(const Pane& pane, const QueryResult::Row& row, const std::string& filter) {
  if (filter.empty()) return true;
  const std::string wanted = lower_case(filter);
  return std::any_of(pane.columns.begin(), pane.columns.end(), [&](const Column& column) {
    return lower_case(shown(column, row.optional_text(column.field))).find(wanted) !=
           std::string::npos;
  });
}

std::size_t width_of(const Column& column, const QueryResult& rows,
                     const std::vector<std::size_t>& visible) {
  std::size_t widest = width(column.title);
  for (const std::size_t number : visible) {
    widest = std::max(widest, width(shown(column, rows[number].optional_text(column.field))));
  }
  return std::min(widest, std::max(column.max_width, width(column.title)));
}

Cell aligned_cell(const Column& column, const std::string& text, std::size_t columns) {
  const bool is_right = is_number(column.kind) && column.kind != Kind::part;
  const std::string fitted = fit(text, columns);
  return {(is_right ? pad_before(fitted, columns) : pad(fitted, columns)) + "  ",
          column.kind == Kind::state ? tint_of_state(text) : Tint::none};
}

Line title_line(const Pane& pane, const std::vector<std::size_t>& widths, const Choice& choice) {
  Line line;
  for (std::size_t i = 0; i < pane.columns.size(); ++i) {
    Cell cell = aligned_cell(pane.columns[i], pane.columns[i].title, widths[i]);
    cell.tint = choice.sort_column == i ? Tint::busy : Tint::strong;
    line.cells.push_back(std::move(cell));
  }
  return line;
}

void add_count(Line& line, const QueryResult::Row& overview, const char* title,
               std::initializer_list<const char*> fields, Tint tint_above_zero) {
  const std::string count = sum_of(overview, fields).text();
  line.cells.push_back({std::string(title) + ' ', Tint::faint});
  line.cells.push_back({count + "   ", count == "0" ? Tint::none : tint_above_zero});
}

}  // namespace

RowName name_of(const Pane& pane, const QueryResult::Row& row) {
  return {pane.node_field == nullptr ? "" : row.text(pane.node_field),
          row.optional_text(pane.id_field).value_or("")};
}

bool is_before(Kind kind, const QueryResult::Cell& left, const QueryResult::Cell& right,
               bool is_descending) {
  if (!left || !right) return left && !right;
  if (is_number(kind)) {
    const long double one = std::strtold(left->c_str(), nullptr);
    const long double other = std::strtold(right->c_str(), nullptr);
    return is_descending ? one > other : one < other;
  }
  return is_descending ? *left > *right : *left < *right;
}

std::vector<std::size_t> visible_rows(const Pane& pane, const QueryResult& rows,
                                      const Choice& choice) {
  std::vector<std::size_t> visible;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (passes(pane, rows[i], choice.filter)) visible.push_back(i);
  }
  if (!choice.sort_column) return visible;
  const Column& column = pane.columns[*choice.sort_column];
  std::stable_sort(visible.begin(), visible.end(), [&](std::size_t left, std::size_t right) {
    return is_before(column.kind, rows[left].optional_text(column.field),
                     rows[right].optional_text(column.field), choice.is_descending);
  });
  return visible;
}

std::size_t selected_place(const Pane& pane, const QueryResult& rows,
                           const std::vector<std::size_t>& visible, const Choice& choice) {
  for (std::size_t place = 0; place < visible.size(); ++place) {
    if (name_of(pane, rows[visible[place]]) == choice.selected) return place;
  }
  return 0;
}

std::vector<Line> pane_lines(const Pane& pane, const QueryResult& rows, const Choice& choice,
                             Size size) {
  const std::vector<std::size_t> visible = visible_rows(pane, rows, choice);
  std::vector<std::size_t> widths;
  for (const Column& column : pane.columns) widths.push_back(width_of(column, rows, visible));
  std::vector<Line> lines{title_line(pane, widths, choice)};
  if (visible.empty()) {
    lines.push_back({{{choice.filter.empty() ? "none" : "none with this filter", Tint::faint}}});
    return lines;
  }
  const std::size_t height = size.rows > 1 ? size.rows - 1 : 1;
  const std::size_t selected = selected_place(pane, rows, visible, choice);
  const std::size_t first = selected < height ? 0 : selected - height + 1;
  for (std::size_t place = first; place < visible.size() && place < first + height; ++place) {
    Line line;
    for (std::size_t i = 0; i < pane.columns.size(); ++i) {
      const Column& column = pane.columns[i];
      const std::string text = shown(column, rows[visible[place]].optional_text(column.field));
      line.cells.push_back(aligned_cell(column, text, widths[i]));
    }
    line.is_selected = place == selected;
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<Line> overview_lines(const QueryResult::Row& overview, const std::string& where) {
  Line head{{{"pulse ", Tint::strong}, {inert(where) + "   ", Tint::none}}};
  if (overview.is_null("counted_at")) return {head, {}, {}, {}};
  head.cells.push_back({inert(spell_time(overview.text("counted_at"))), Tint::faint});
  const auto is_on = [&](const char* field) { return overview.optional_text(field) == "t"; };
  if (!is_on("claims")) head.cells.push_back({"   claims are off", Tint::bad});
  if (!is_on("sweeps")) head.cells.push_back({"   nothing sweeps", Tint::bad});
  Line jobs;
  add_count(jobs, overview, "ready", {"ready"}, Tint::strong);
  add_count(jobs, overview, "running", {"running"}, Tint::busy);
  add_count(jobs, overview, "behind queues", {"parked_full", "parked_future"}, Tint::none);
  add_count(jobs, overview, "paused", {"parked_paused"}, Tint::warning);
  add_count(jobs, overview, "after others", {"parked_waiting"}, Tint::none);
  add_count(jobs, overview, "future", {"future"}, Tint::none);
  if (!overview.is_null("oldest_due_age")) {
    jobs.cells.push_back({"oldest due for ", Tint::faint});
    jobs.cells.push_back({spell_seconds(overview.number("oldest_due_age")), Tint::none});
  }
  Line ends;
  ends.cells.push_back({"last minute: ", Tint::faint});
  add_count(ends, overview, "completed", {"completed"}, Tint::good);
  add_count(ends, overview, "failed", {"failed"}, Tint::bad);
  add_count(ends, overview, "quarantined", {"quarantined"}, Tint::bad);
  add_count(ends, overview, "cancelled", {"cancelled"}, Tint::warning);
  add_count(ends, overview, "expired", {"expired"}, Tint::warning);
  Line workers;
  workers.cells.push_back({"workers: ", Tint::faint});
  add_count(workers, overview, "alive", {"workers_alive"}, Tint::good);
  add_count(workers, overview, "draining", {"workers_draining"}, Tint::warning);
  add_count(workers, overview, "silent", {"workers_silent"}, Tint::bad);
  add_count(workers, overview, "lost last hour", {"workers_lost"}, Tint::bad);
  return {head, jobs, ends, workers};
}

}  // namespace pulse::console
