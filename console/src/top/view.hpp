// How rows become the lines of a pane: order, filter, selection, and the cut to size.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "top/cells.hpp"
#include "top/pane.hpp"

namespace pulse::console {

// A row by its name or id, and of several nodes by its node.
struct RowName {
  std::string node;  // empty: of the only database
  std::string id;    // empty: no row that has a name

  bool operator==(const RowName&) const = default;
};

RowName name_of(const Pane& pane, const QueryResult::Row& row);

// The choices of the user in a pane. The selection is a name, so that it stays where rows move.
struct Choice {
  std::optional<std::size_t> sort_column;  // else the order of the query
  bool is_descending = true;
  std::string filter;
  RowName selected;
};

// Whether a row stands before another. Rows without a value stand last in either order.
bool is_before(Kind kind, const QueryResult::Cell& left, const QueryResult::Cell& right,
               bool is_descending);

// The numbers of the rows that pass the filter, in order.
std::vector<std::size_t> visible_rows(const Pane& pane, const QueryResult& rows,
                                      const Choice& choice);

// The place of the selection among the visible rows; the first place where the selected row is
// gone.
std::size_t selected_place(const Pane& pane, const QueryResult& rows,
                           const std::vector<std::size_t>& visible, const Choice& choice);

// Titles and rows, at most `size.rows` lines: the rows around the selection.
std::vector<Line> pane_lines(const Pane& pane, const QueryResult& rows, const Choice& choice,
                             Size size);

// The head of the screen, from the single row of pulse.overview or the sum of several nodes.
std::vector<Line> overview_lines(const QueryResult::Row& overview, const std::string& where);

}  // namespace pulse::console
