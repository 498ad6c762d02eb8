#include "pages/list_page.hpp"

#include <algorithm>
#include <memory>

namespace pulse::console {
namespace {

constexpr int kPageRows = 50;

Url address(const Path& path, const char* parameter, const std::string& value) {
  return parameter == nullptr ? Url(path).part(value) : Url(path).with(parameter, value);
}

bool is_left_out(const Column& column, const TableLayout& layout) {
  return column.title.empty() ||
         std::find(layout.hidden.begin(), layout.hidden.end(), column.field) != layout.hidden.end();
}

// Columns that have a value somewhere: a page has no space for others.
Columns filled_columns(const Columns& columns, const QueryResult& rows, const TableLayout& layout) {
  Columns shown;
  for (const Column& column : columns) {
    if (is_left_out(column, layout)) continue;
    bool has_value = false;
    for (std::size_t i = 0; i < rows.size() && !has_value; ++i) {
      const auto& cell = rows[i].optional_text(column.field);
      has_value = cell && !cell->empty() && (column.kind != Kind::boolean || *cell == "t");
    }
    if (has_value || &column == columns.data()) shown.push_back(column);
  }
  return shown;
}

Markup linked(const Column& column, const QueryResult::Row& row, const TableLayout& layout,
              const Spelling& spelling) {
  Markup content = layout.cell ? layout.cell(column, row) : Markup();
  if (!content.empty()) return content;
  content = value(column, row.optional_text(column.field), spelling);
  if (!content.empty()) content += plus_of(column, row);
  for (const RowLink& known : layout.links) {
    if (column.field != known.field || content.empty()) continue;
    const auto& target = row.optional_text(known.from);
    if (target) return link(address(known.path, known.parameter, *target), content);
  }
  return content;
}

// A menu, so that the actions of a row do not shout louder than the row.
Markup row_actions(const QueryResult::Row& row, const TableLayout& layout) {
  Markup offered;
  std::string about;
  for (const RowAction& action : layout.actions) {
    if (!action.is_offered(row)) continue;
    about = row.text(action.from);
    offered += element("li", "", link(address(action.path, action.parameter, about), action.name));
  }
  if (offered.empty()) return element("td", "row-actions");
  const Markup summary =
      element("summary", {{"aria-label", "Actions of " + about}, {"title", "Actions"}}, "⋯");
  return element("td", "row-actions",
                 element("details", {{"class", "menu"}, {"name", "menu"}},
                         {summary, element("ul", "", offered)}));
}

Markup check_box(const TableLayout& layout, const QueryResult::Row& row) {
  const std::string& value = row.text(layout.check);
  return element("td", "check",
                 element("input", {{"type", "checkbox"},
                                   {"name", layout.check},
                                   {"value", value},
                                   {"aria-label", "choose " + value}}));
}

bool is_about_more(const QueryResult::Row& row, const TableLayout& layout) {
  return layout.more != nullptr && !row.is_null(layout.more);
}

Markup body_row(const Columns& columns, const QueryResult::Row& row, const TableLayout& layout,
                const Spelling& spelling, bool with_actions) {
  Markup cells;
  if (layout.check != nullptr && with_actions) cells += check_box(layout, row);
  for (const Column& column : columns) {
    const bool is_more = is_about_more(row, layout) && &column == columns.data();
    const Markup content =
        is_more ? Markup(row.text(layout.more)) : linked(column, row, layout, spelling);
    std::string css = stands_right(column.kind) ? "number" : "";
    if (content.empty()) css += " none";
    if (stands_right(column.kind) && content.html() == "0") css += " zero";
    if (&column == columns.data()) css += " first";
    cells += element("td", {{"class", css}, {"data-title", column.title}}, content);
  }
  if (!layout.actions.empty() && with_actions) {
    cells += is_about_more(row, layout) ? element("td", "row-actions") : row_actions(row, layout);
  }
  if (layout.behind && with_actions) cells += element("td", "behind", layout.behind(row));
  return element("tr", "", cells);
}

Markup list_content(const Request& request, const ListPage& definition) {
  const List& list = definition.list();
  Params params = definition.params;
  if (definition.is_paged) {
    params.push_back(request.query.find("before"));
    params.push_back(std::to_string(kPageRows));
  }
  const Spelling spelling = spelling_of(request);
  const QueryResult rows = request.database().query(list.sql, params);
  Markup content =
      html_table(list.columns, rows, definition.layout, spelling, request.access.is_operator);
  if (definition.is_paged && rows.size() == kPageRows) {
    const std::string last = rows[rows.size() - 1].text(list.columns[0].field);
    content += element("p", "more", button(Url(definition.path).with("before", last), "Older"));
  }
  return content += end_of(list, rows);
}

}  // namespace

bool is_paused(const QueryResult::Row& row) { return row.optional_text("paused") == "t"; }
bool is_not_paused(const QueryResult::Row& row) { return !is_paused(row); }
bool is_any(const QueryResult::Row& /*row*/) { return true; }

Markup running_cell(const Column& column, const QueryResult::Row& job) {
  if (column.field != "attempts") return {};
  return {job.text("attempts"), " of ", job.text("max_attempts")};
}

Markup html_table(const Columns& columns, const QueryResult& rows, const TableLayout& layout,
                  const Spelling& spelling, bool with_actions) {
  if (rows.empty()) return element("p", "empty", layout.empty);
  const Columns shown = filled_columns(columns, rows, layout);
  Markup titles;
  if (layout.check != nullptr && with_actions) titles += element("th", "check");
  for (const Column& column : shown) {
    titles +=
        element("th", {{"scope", "col"}, {"class", stands_right(column.kind) ? "number" : ""}},
                column.title);
  }
  if ((!layout.actions.empty() || layout.behind) && with_actions) titles += element("th", "");
  Markup body;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    body += body_row(shown, rows[i], layout, spelling, with_actions);
  }
  return element(
      "div", layout.css,
      element("table", "",
              {element("thead", "", element("tr", "", titles)), element("tbody", "", body)}));
}

Markup end_of(const List& list, const QueryResult& rows) {
  const std::string end = word_of_end(list, rows);
  return end.empty() ? Markup() : element("p", "more", "Here " + end + ".");
}

void add_list_page(Router& router, ListPage definition) {
  const auto shared = std::make_shared<const ListPage>(std::move(definition));
  const std::string path(shared->path.text());
  const Url stream = Url("/live").part(path.substr(1));
  router.add("GET", path, Need::read, [shared, stream](const Request& request) {
    const Markup content = list_content(request, *shared);
    return shown_page(request, {shared->title,
                                shared->path.text().data(),
                                {page_heading(shared->title, {}, shared->lead),
                                 shared->is_paged ? content : live(stream, content)}});
  });
  if (shared->is_paged) return;
  router.add_stream(stream.text(), Need::read, kListInterval, [shared](const Request& request) {
    return list_content(request, *shared).html();
  });
}

}  // namespace pulse::console
