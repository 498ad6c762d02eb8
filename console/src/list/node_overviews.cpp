#include "list/node_overviews.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "list/lists.hpp"
#include "output/partial_count.hpp"

namespace pulse::console {
namespace {

std::vector<std::string> fields_of(const Columns& columns) {
  std::vector<std::string> fields;
  for (const Column& column : columns) fields.push_back(column.field);
  return fields;
}

// Counts that no node knows stay unknown.
QueryResult::Cell added_up(const QueryResult& rows, const std::string& field) {
  std::int64_t sum = 0;
  bool is_known = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto count = rows[i].optional_integer(field);
    sum += count.value_or(0);
    is_known = is_known || count.has_value();
  }
  return is_known ? QueryResult::Cell(std::to_string(sum)) : std::nullopt;
}

QueryResult::Cell longest(const QueryResult& rows, const std::string& field) {
  QueryResult::Cell longest;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].is_null(field)) continue;
    const bool is_longer = !longest || rows[i].number(field) > std::stod(*longest);
    if (is_longer) longest = rows[i].text(field);
  }
  return longest;
}

QueryResult::Cell all_names(const QueryResult& rows, const std::string& field) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const std::string& name : json_strings(rows[i].optional_text(field))) names.insert(name);
  }
  return nlohmann::json(names).dump();
}

QueryResult::Cell last(const QueryResult& rows, const std::string& field) {
  QueryResult::Cell last;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].is_null(field)) last = std::max(last, rows[i].optional_text(field));
  }
  return last;
}

QueryResult::Cell is_true_everywhere(const QueryResult& rows, const std::string& field) {
  QueryResult::Cell result;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const QueryResult::Cell& value = rows[i].optional_text(field);
    if (value && result != "f") result = value;
  }
  return result;
}

QueryResult::Cell sum_of_field(const QueryResult& rows, const Column& column) {
  if (column.field == "shard") return std::nullopt;
  switch (column.kind) {
    case Kind::count: return added_up(rows, column.field);
    case Kind::seconds: return longest(rows, column.field);
    case Kind::names: return all_names(rows, column.field);
    case Kind::time: return last(rows, column.field);
    case Kind::boolean: return is_true_everywhere(rows, column.field);
    default: return std::nullopt;
  }
}

constexpr std::string_view kBeforeReason = ": ";

std::string state_of(const QueryResult::Row& node) {
  if (!node.is_null("trouble")) {
    const std::string& trouble = node.text("trouble");
    return trouble.substr(0, trouble.find(kBeforeReason));
  }
  const std::string& installation = node.text("installation");
  if (installation == "copy" || installation == "subscribed") return "a copy: claims are refused";
  if (node.optional_text("claims") != "t") return "claims are off";
  if (node.optional_text("sweeps") != "t") return "no sweep runs";
  return "answers";
}

// The trouble behind the state; NULL where the state is the whole trouble.
QueryResult::Cell reason_of(const QueryResult::Row& node) {
  const QueryResult::Cell& trouble = node.optional_text("trouble");
  const auto end = trouble ? trouble->find(kBeforeReason) : std::string::npos;
  if (end == std::string::npos) return std::nullopt;
  return trouble->substr(end + kBeforeReason.size());
}

// The counts that node_columns() shows of an overview, in that order.
std::vector<QueryResult::Cell> main_counts(const QueryResult::Row& node) {
  const auto sum = [&](std::initializer_list<const char*> fields) {
    return sum_of(node, fields).value();
  };
  return {sum({"ready"}),
          node.optional_text("oldest_due_age"),
          sum({"running"}),
          sum({"parked_full", "parked_paused", "parked_future", "parked_waiting"}),
          sum({"future"}),
          sum({"completed"}),
          sum({"failed", "quarantined"}),
          sum({"workers_alive"})};
}

}  // namespace

QueryResult read_node_overview(Database& database) {
  static const std::string kSql = "SELECT o.*, (" PULSE_DATABASE_IDENTITY ") AS identity FROM (" +
                                  std::string(overview_list().sql) + ") AS o";
  return database.query(kSql.c_str());
}

const Columns& node_overview_columns() {
  static const Columns kColumns = [] {
    Columns columns{{"node", "node"}, {"trouble", "trouble"}};
    const Columns& each = overview_list().columns;
    columns.insert(columns.end(), each.begin(), each.end());
    return columns;
  }();
  return kColumns;
}

QueryResult node_overviews(NodeAnswers<QueryResult> answers) {
  refuse_second_names(answers, [](const QueryResult& row) { return row[0].text("identity"); });
  const std::vector<std::string> fields = fields_of(overview_list().columns);
  QueryResult rows(fields_of(node_overview_columns()), {});
  for (const NodeAnswer<QueryResult>& answer : answers) {
    rows.add_cell(answer.node);
    rows.add_cell(answer.is_there() ? std::nullopt : QueryResult::Cell(answer.trouble));
    for (const std::string& field : fields) {
      rows.add_cell(answer.is_there() ? answer.value[0].optional_text(field) : std::nullopt);
    }
  }
  return rows;
}

const Columns& node_columns() {
  static const Columns kColumns{
      {"node", "node"},
      {"state", "state", Kind::state},
      {"ready", "ready", Kind::count},
      {"oldest due for", "oldest_due_age", Kind::seconds},
      {"running", "running", Kind::count},
      {"parked", "parked", Kind::count},
      {"later", "future", Kind::count},
      {"completed, last minute", "completed", Kind::count},
      {"failed, last minute", "failed", Kind::count},
      {"workers", "workers_alive", Kind::count},
      {"trouble", "reason", Kind::text, 200},
  };
  return kColumns;
}

QueryResult node_list(const QueryResult& overviews) {
  QueryResult rows(fields_of(node_columns()), {});
  for (std::size_t i = 0; i < overviews.size(); ++i) {
    const QueryResult::Row node = overviews[i];
    const bool is_there = node.is_null("trouble");
    rows.add_cell(node.text("node"));
    rows.add_cell(state_of(node));
    for (QueryResult::Cell& count : main_counts(node)) {
      rows.add_cell(is_there ? std::move(count) : std::nullopt);
    }
    rows.add_cell(reason_of(node));
  }
  return rows;
}

QueryResult sum_of_nodes(const QueryResult& overviews) {
  const Columns& columns = overview_list().columns;
  QueryResult sum(fields_of(columns), {});
  for (const Column& column : columns) sum.add_cell(sum_of_field(overviews, column));
  return sum;
}

}  // namespace pulse::console
