// Pages that show a list: a query, the columns, and where the values lead.
#pragma once

#include "list/lists.hpp"
#include "pages/frame.hpp"
#include "serve/router.hpp"

namespace pulse::console {

// Makes the value of a column a link. `from` is the field whose value the address gets.
struct RowLink {
  const char* field;
  Path path;
  const char* parameter;  // nullptr: a part of the path
  const char* from;
};

// A button of a row; it leads to a page that asks before the change.
struct RowAction {
  const char* name;
  Path path;
  const char* parameter;
  const char* from;
  bool (*is_offered)(const QueryResult::Row& row);
};

// For rows with a field `paused`, and for every row.
bool is_paused(const QueryResult::Row& row);
bool is_not_paused(const QueryResult::Row& row);
bool is_any(const QueryResult::Row& row);

struct TableLayout {
  std::vector<RowLink> links;
  std::vector<RowAction> actions;
  std::vector<std::string> hidden;  // fields whose columns the table leaves out
  const char* empty = "Nothing here.";
  // The field whose value a checkbox in front of each row sends; nullptr: no checkbox.
  const char* check = nullptr;
  // Draws a value; empty markup leaves the plain value.
  std::function<Markup(const Column& column, const QueryResult::Row& row)> cell = nullptr;
  const char* css = "table";
  // Drawn behind each row, for operators.
  std::function<Markup(const QueryResult::Row& row)> behind = nullptr;
  // The field that has a value in a row about further names: the text of the row's first column. No
  // action is offered there.
  const char* more = nullptr;
};

// Draws the attempt of a running job: which attempt, of how many.
Markup running_cell(const Column& column, const QueryResult::Row& job);

Markup html_table(const Columns& columns, const QueryResult& rows, const TableLayout& layout,
                  const Spelling& spelling, bool with_actions);

// The sentence below a table that may end before the last row of its list; else empty.
Markup end_of(const List& list, const QueryResult& rows);

struct ListPage {
  Path path;
  const char* title;
  const char* lead;
  const List& (*list)();
  Params params;
  TableLayout layout;
  bool is_paged = false;  // $1 is an id below which the page begins, $2 how many rows the page has
};

// The page and, unless it is paged, the stream that keeps it live.
void add_list_page(Router& router, ListPage definition);

}  // namespace pulse::console
