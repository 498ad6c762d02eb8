// Queues as a tree: mail/tenant-7 stands below mail.
#include <map>

#include "base/text/inert.hpp"
#include "pages/list_page.hpp"
#include "pages/pages.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

// In the order of a tree: a level stands before the queues within it.
struct TreeOrder {
  bool operator()(const std::string& left, const std::string& right) const {
    for (std::size_t i = 0; i < left.size() && i < right.size(); ++i) {
      if (left[i] == right[i]) continue;
      if (left[i] == '/') return true;
      if (right[i] == '/') return false;
      return static_cast<unsigned char>(left[i]) < static_cast<unsigned char>(right[i]);
    }
    return left.size() < right.size();
  }
};

// Maps each queue and level to a row. A level without a row has neither settings nor jobs of its
// own, or is among the further queues that the last row adds up.
using Tree = std::map<std::string, std::optional<std::size_t>, TreeOrder>;

Tree tree_of(const QueryResult& rows) {
  Tree tree;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].is_null("name")) continue;  // of further queues
    const std::string& name = rows[i].text("name");
    tree[name] = i;
    for (std::size_t slash = name.find('/'); slash != std::string::npos;
         slash = name.find('/', slash + 1)) {
      tree.try_emplace(name.substr(0, slash));
    }
  }
  return tree;
}

// Beside further queues a level without a row has at least no jobs, as other names without one.
QueryResult::Cell cell_of_level(const std::string& field, const std::string& name, bool has_more) {
  if (field == "name") return name;
  if (!has_more) return std::nullopt;
  if (field == "plus" || field == "plus_of_all") return "+";
  const bool is_count = field == "open" || field == "parked" || field == "running";
  return is_count ? QueryResult::Cell("0") : std::nullopt;
}

// One row of the list for each node of the tree, with its depth, and last the row of further
// queues.
QueryResult with_levels(const QueryResult& rows, const Tree& tree) {
  std::vector<std::string> fields{"plus", "plus_of_all"};
  for (const Column& column : queue_list().columns) fields.push_back(column.field);
  std::vector<QueryResult::Cell> cells;
  const auto add_row = [&](std::size_t number) {
    for (const std::string& field : fields) cells.push_back(rows[number].optional_text(field));
  };
  bool has_more = false;
  for (std::size_t i = 0; i < rows.size(); ++i) has_more = has_more || rows[i].is_null("name");
  for (const auto& [name, number] : tree) {
    cells.emplace_back(std::to_string(std::count(name.begin(), name.end(), '/')));
    if (number) {
      add_row(*number);
      continue;
    }
    for (const std::string& field : fields) {
      cells.push_back(cell_of_level(field, name, has_more));
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].is_null("name")) continue;
    cells.emplace_back("0");
    add_row(i);
  }
  fields.insert(fields.begin(), "depth");
  return {std::move(fields), std::move(cells)};
}

bool has_settings(const QueryResult::Row& queue) { return !queue.is_null("concurrency"); }

// The last part of the name, as deep as the level; the title is the whole name. A queue whose last
// part is empty (mail/) shows its whole name.
Markup tree_name(const QueryResult::Row& queue) {
  const std::string& name = queue.text("name");
  const std::string depth = queue.text("depth");
  const std::string part = name.substr(name.rfind('/') + 1);
  const Markup text = link(Url("/queue").with("name", name), part.empty() ? name : visible(part));
  const Markup paused = is_paused(queue) ? element("span", "state warning", "paused") : Markup();
  return {element("span", {{"class", "depth depth-" + depth}, {"title", name}}, text), " ", paused};
}

// "2 at a time, 20 in all, 100 per 1 min".
Markup limit_text(const QueryResult::Row& queue) {
  std::string text;
  const auto add = [&](const char* field, const std::string& unit) {
    if (queue.is_null(field)) return;
    text += (text.empty() ? "" : ", ") + spell_count(queue.text(field)) + unit;
  };
  add("concurrency", " at a time");
  add("total", " in all");
  if (!queue.is_null("rate")) add("rate", " per " + spell_seconds(queue.number("per")));
  return text;
}

// The columns of the list; one has all limits, so that the figures have space.
Columns page_columns() {
  Columns columns;
  for (const Column& column : queue_list().columns) {
    const bool is_limit = column.field == "concurrency";
    columns.push_back(is_limit ? Column{"limits", "concurrency", Kind::text} : column);
  }
  return columns;
}

Markup cell(const Column& column, const QueryResult::Row& queue) {
  if (column.field == "name") return tree_name(queue);
  if (column.field == "concurrency") return limit_text(queue);
  if (column.field == "running" && !queue.is_null("concurrency") && !queue.is_null("running")) {
    return {shown(column, queue), " of ", spell_count(queue.text("concurrency"))};
  }
  return {};
}

Markup queue_tree(const Request& request) {
  const QueryResult rows = request.database().query(queue_list().sql);
  const TableLayout layout{{},
                           {{"Pause", "/queues/pause", "queue", "name", is_not_paused},
                            {"Resume", "/queues/resume", "queue", "name", is_paused},
                            {"Limits", "/queues/limit", "queue", "name", is_any},
                            {"Unset", "/queues/unset", "queue", "name", has_settings}},
                           {"more", "estimated", "paused", "total", "rate"},
                           "No queue has jobs or settings.",
                           nullptr,
                           cell,
                           "table depths",
                           nullptr,
                           "more"};
  return html_table(page_columns(), with_levels(rows, tree_of(rows)), layout, spelling_of(request),
                    request.access.is_operator);
}

}  // namespace

void add_queue_pages(Router& router) {
  router.add("GET", "/queues", Need::read, [](const Request& request) {
    return shown_page(
        request, {"Queues",
                  "/queues",
                  {page_heading("Queues", {},
                                "Queues with jobs or settings, each below the level that it is "
                                "within. Open jobs may start now; parked ones wait for a place, "
                                "for a pause to end or for their time. * has the settings of the "
                                "queues within a level that have none of their own."),
                   live(Url("/live").part("queues"), queue_tree(request))}});
  });
  router.add_stream("/live/queues", Need::read, kListInterval,
                    [](const Request& request) { return queue_tree(request).html(); });
}

}  // namespace pulse::console
