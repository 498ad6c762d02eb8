#include "command_line/each_node.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "database/interrupt.hpp"

namespace pulse::console {
namespace {

struct IdentifiedList {
  std::string identity;  // of the database
  TakenList list;
};

// Runs the command in the node's session; the list of the command waits in the result.
IdentifiedList take_list(const Run& run, const CommonOptions& options, const Output& output,
                         Database& database) {
  IdentifiedList taken{.identity = database.query(kDatabaseIdentity)[0].text("identity"),
                       .list = {}};
  Console node{options, std::move(database), {}, output, &taken.list};
  run(node);
  return taken;
}

// The lists in the order of the nodes.
std::vector<TakenList> lists_of(NodeAnswers<IdentifiedList> answers) {
  refuse_second_names(answers, [](const IdentifiedList& taken) { return taken.identity; });
  std::vector<TakenList> lists;
  for (auto& [node, taken, trouble] : answers) {
    lists.push_back(trouble.empty() ? std::move(taken.list)
                                    : TakenList{.node = {}, .trouble = trouble});
    lists.back().node = node;
  }
  return lists;
}

Columns columns_of_all(const std::vector<TakenList>& lists) {
  Columns columns{{"node", "node"}, {"trouble", "trouble", Kind::text, 60}};
  for (const TakenList& list : lists) {
    if (list.columns.empty()) continue;
    columns.insert(columns.end(), list.columns.begin(), list.columns.end());
    break;
  }
  return columns;
}

// The node and its trouble, then the fields of the columns, and of the pluses behind counts.
std::vector<std::string> taken_fields(const Columns& columns) {
  std::vector<std::string> fields;
  for (const Column& column : columns) fields.push_back(column.field);
  for (const Column& column : columns) {
    const bool is_new = std::find(fields.begin(), fields.end(), column.plus_field) == fields.end();
    if (!column.plus_field.empty() && is_new) fields.push_back(column.plus_field);
  }
  return fields;
}

void add_row(QueryResult& rows, const std::vector<std::string>& fields, const TakenList& list,
             std::optional<QueryResult::Row> row) {
  rows.add_cell(list.node);
  rows.add_cell(list.trouble.empty() ? std::nullopt : QueryResult::Cell(list.trouble));
  for (std::size_t i = 2; i < fields.size(); ++i) {
    rows.add_cell(row ? row->optional_text(fields[i]) : std::nullopt);
  }
}

QueryResult rows_of_all(const std::vector<TakenList>& lists, const Columns& columns) {
  const std::vector<std::string> fields = taken_fields(columns);
  QueryResult rows(fields, {});
  for (const TakenList& list : lists) {
    if (!list.trouble.empty()) add_row(rows, fields, list, std::nullopt);
    for (std::size_t i = 0; i < list.rows.size(); ++i) add_row(rows, fields, list, list.rows[i]);
  }
  return rows;
}

}  // namespace

// The handler of Ctrl-C knows one session only: with several, an interrupt ends the program.
ExitStatus run_for_each_node(Console& console, const Run& run) {
  leave_interrupts();
  NodeSessions sessions(std::move(console.nodes));
  const std::vector<TakenList> lists = lists_of(sessions.ask<IdentifiedList>(
      [run, options = console.options, output = console.output](Database& database) {
        return take_list(run, options, output, database);
      }));
  const Columns columns = columns_of_all(lists);
  console.print_list(columns, rows_of_all(lists, columns));
  for (const TakenList& list : lists) {
    if (list.end.empty()) continue;
    std::fprintf(stderr, "pulse: of %s %s\n", list.node.c_str(), list.end.c_str());
  }
  const bool is_complete = std::all_of(lists.begin(), lists.end(),
                                       [](const TakenList& list) { return list.trouble.empty(); });
  return is_complete ? ExitStatus::done : ExitStatus::no_database;
}

}  // namespace pulse::console
