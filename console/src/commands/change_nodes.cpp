#include "commands/change_nodes.hpp"

#include <cstdio>
#include <utility>

#include "base/text/inert.hpp"
#include "command_line/node_operations.hpp"
#include "command_line/operation.hpp"
#include "database/interrupt.hpp"
#include "output/table.hpp"

namespace pulse::console {
namespace {

struct NodePreview {
  std::string identity;  // of the database
  ChangePreview preview;
  QueryResult sample;
};

NodePreview preview_at_node(Database& database, const JobChange& change) {
  NodePreview node{
      database.query(kDatabaseIdentity)[0].text("identity"), preview_change(database, change), {}};
  node.sample = read_sample(database, node.preview);
  return node;
}

std::vector<NodeDatabase> copies_of(const std::vector<NodeDatabase>& nodes) {
  std::vector<NodeDatabase> copies;
  for (const NodeDatabase& node : nodes) copies.push_back({node.name, node.database.another()});
  return copies;
}

// The nodes that have jobs of the change.
struct Concerned {
  std::vector<std::string> names;
  std::string jobs;  // "all 9 waiting jobs of eu, all 2 waiting jobs of us"
  QueryResult sample;
  bool is_complete = true;  // whether no node has trouble
};

const Columns& columns_of_sample() {
  static const Columns kColumns = [] {
    Columns columns{{"node", "node"}};
    columns.insert(columns.end(), sample_columns().begin(), sample_columns().end());
    return columns;
  }();
  return kColumns;
}

void add_sample(QueryResult& all, const std::string& node, const QueryResult& sample) {
  for (std::size_t i = 0; i < sample.size(); ++i) {
    all.add_cell(node);
    for (const Column& column : sample_columns()) {
      all.add_cell(sample[i].optional_text(column.field));
    }
  }
}

// A node that does not answer now would not make the change either.
Concerned ask_nodes(const Console& console, const JobChange& change) {
  NodeSessions sessions(copies_of(console.nodes), kChangePatience);
  auto answers = sessions.ask<NodePreview>(
      [change](Database& database) { return preview_at_node(database, change); });
  refuse_second_names(answers, [](const NodePreview& node) { return node.identity; });
  std::vector<std::string> fields;
  for (const Column& column : columns_of_sample()) fields.push_back(column.field);
  Concerned concerned{.names = {}, .jobs = {}, .sample = QueryResult(std::move(fields), {})};
  JobChange states_only = change;
  states_only.filter = JobFilter();
  states_only.filter.states = change.filter.states;
  for (const auto& [node, asked, trouble] : answers) {
    if (!trouble.empty()) {
      concerned.is_complete = false;
      std::fprintf(stderr, "pulse: %s %s; its jobs stay as they are\n", node.c_str(),
                   inert(trouble).c_str());
      continue;
    }
    if (asked.preview.is_of_none()) continue;
    concerned.names.push_back(node);
    concerned.jobs +=
        (concerned.jobs.empty() ? "" : ", ") + subject(states_only, asked.preview, node);
    add_sample(concerned.sample, node, asked.sample);
  }
  return concerned;
}

std::string question_of(const JobChange& change, const Concerned& concerned) {
  const std::string conditions = change.filter.conditions();
  return change.action + ' ' +
         inert(concerned.jobs + (conditions.empty() ? "" : ' ' + conditions)) +
         "? Each node makes the change by itself.";
}

}  // namespace

ExitStatus change_jobs_of_nodes(Console& console, const JobChange& change,
                                const std::string& arguments) {
  if (change.is_by_id()) {
    std::fputs("pulse: ids are of one database: give its --database alone\n", stderr);
    return ExitStatus::usage;
  }
  leave_interrupts();
  const Concerned concerned = ask_nodes(console, change);
  const ExitStatus otherwise = concerned.is_complete ? ExitStatus::done : ExitStatus::no_database;
  if (concerned.names.empty()) {
    std::fprintf(stderr, "pulse: no job to %s meets %s\n", change.action.c_str(),
                 inert(change.document()).c_str());
    return concerned.is_complete ? ExitStatus::refused : otherwise;
  }
  if (!console.options.is_agreed) {
    const Style& style = console.output.style();
    std::fputs(table(columns_of_sample(), concerned.sample, style).c_str(), stderr);
  }
  if (!is_confirmed(console, question_of(change, concerned))) return ExitStatus::refused;
  const ExitStatus status =
      start_operations(console, concerned.names, [change, arguments](Database& database) {
        return start_change(database, change, arguments, actor());
      });
  return status == ExitStatus::done ? otherwise : status;
}

}  // namespace pulse::console
