#include "command_line/node_operations.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/text/inert.hpp"
#include "command_line/operation.hpp"
#include "database/interrupt.hpp"
#include "job/node_jobs.hpp"
#include "job/operation_steps.hpp"

namespace pulse::console {
namespace {

// So long a pass of a node takes; then the nodes wait for each other.
constexpr std::chrono::milliseconds kPass(500);

// The operation of one node.
struct Outcome {
  std::string id;       // of the operation; empty before the start
  std::string trouble;  // why the operation is not known to go on; empty without trouble
  QueryResult step;     // the last answer

  bool is_running() const {
    return trouble.empty() && (step.empty() || step[0].text("state") == "running");
  }
};
using Outcomes = std::map<std::string, Outcome>;

NodeOperations operations_of(const Outcomes& outcomes) {
  NodeOperations operations;
  for (const auto& [node, outcome] : outcomes) {
    if (!outcome.id.empty()) operations[node] = outcome.id;
  }
  return operations;
}

NodeOperations running_operations(const Outcomes& outcomes) {
  NodeOperations operations;
  for (const auto& [node, outcome] : outcomes) {
    if (outcome.is_running() && !outcome.id.empty()) operations[node] = outcome.id;
  }
  return operations;
}

void note(Outcomes& outcomes, NodeAnswers<QueryResult> answers) {
  for (auto& [node, step, trouble] : answers) {
    Outcome& outcome = outcomes[node];
    if (!outcome.trouble.empty()) continue;
    outcome.trouble = trouble;
    if (!step.empty()) outcome.step = std::move(step);
  }
}

void run_all(NodeSessions& nodes, Outcomes& outcomes) {
  bool has_told = false;
  for (NodeOperations left = running_operations(outcomes); !left.empty();
       left = running_operations(outcomes)) {
    note(outcomes, nodes.ask<QueryResult>([left](Database& database) {
      database.open();
      const auto found = left.find(database.name());
      return found == left.end() ? QueryResult() : run_steps(database, found->second, kPass);
    }));
    if (has_told || running_operations(outcomes).empty()) continue;
    const std::string label = label_of(operations_of(outcomes));
    std::fprintf(stderr,
                 "operations %s have begun; \"pulse operations run %s\" goes on with them\n",
                 label.c_str(), label.c_str());
    has_told = true;
  }
}

void print_outcomes(const Console& console, const Outcomes& outcomes) {
  Columns columns{{"node", "node"}, {"trouble", "trouble"}};
  columns.insert(columns.end(), operation_columns().begin(), operation_columns().end());
  std::vector<std::string> fields;
  for (const Column& column : columns) fields.push_back(column.field);
  QueryResult rows(fields, {});
  std::string words;
  for (const auto& [node, outcome] : outcomes) {
    rows.add_cell(node);
    rows.add_cell(outcome.trouble.empty() ? std::nullopt : QueryResult::Cell(outcome.trouble));
    for (const Column& column : operation_columns()) {
      rows.add_cell(outcome.step.empty() ? std::nullopt
                                         : outcome.step[0].optional_text(column.field));
    }
    words += node + ": " + (outcome.step.empty() ? "" : outcome_of(outcome.step[0])) +
             (outcome.step.empty() || outcome.trouble.empty() ? "" : "; ") +
             inert(outcome.trouble) + '\n';
  }
  if (console.options.is_json) return console.print_list(columns, rows);
  console.output.print(words);
}

// The operations that undo may take back, and those that have no end yet.
void tell_ways_on(const Outcomes& outcomes) {
  NodeOperations undoable;
  NodeOperations open;
  for (const auto& [node, outcome] : outcomes) {
    if (!outcome.step.empty() && may_be_undone(outcome.step[0])) undoable[node] = outcome.id;
    const bool has_end = !outcome.step.empty() && outcome.step[0].text("state") != "running";
    if (!outcome.id.empty() && !has_end) open[node] = outcome.id;
  }
  if (!undoable.empty()) {
    std::fprintf(stderr, "pulse undo %s takes it back\n", label_of(undoable).c_str());
  }
  if (!open.empty()) {
    std::fprintf(stderr, "pulse operations run %s goes on\n", label_of(open).c_str());
  }
}

ExitStatus tell(const Console& console, const Outcomes& outcomes) {
  print_outcomes(console, outcomes);
  tell_ways_on(outcomes);
  const bool is_complete = std::all_of(outcomes.begin(), outcomes.end(), [](const auto& entry) {
    return entry.second.trouble.empty();
  });
  return is_complete ? ExitStatus::done : ExitStatus::no_database;
}

std::vector<std::string> nodes_of(const NodeOperations& operations) {
  std::vector<std::string> names;
  for (const auto& [node, id] : operations) names.push_back(node);
  return names;
}

// Sessions with the databases of these names.
NodeSessions sessions_with(const Console& console, const std::vector<std::string>& names) {
  std::vector<NodeDatabase> nodes;
  for (const NodeDatabase& node : console.nodes) {
    const bool is_named = std::find(names.begin(), names.end(), node.name) != names.end();
    if (is_named) nodes.push_back({node.name, node.database.another()});
  }
  return NodeSessions(std::move(nodes), kChangePatience);
}

Outcomes begun(const NodeOperations& operations) {
  Outcomes outcomes;
  for (const auto& [node, id] : operations) outcomes[node].id = id;
  return outcomes;
}

}  // namespace

std::string label_of(const NodeOperations& operations) {
  NodePlaces places;
  for (const auto& [node, id] : operations) places[node] = {id};
  return text_of(places);
}

std::optional<NodeOperations> parse_label(std::string_view label) {
  const auto places = parse_places(label);
  if (!places) return std::nullopt;
  NodeOperations operations;
  for (const auto& [node, place] : *places) {
    if (place.end || place.is_behind_all()) return std::nullopt;
    operations[node] = place.id;
  }
  return operations;
}

bool has_node(const Console& console, const std::string& name) {
  return std::any_of(console.nodes.begin(), console.nodes.end(),
                     [&](const NodeDatabase& node) { return node.name == name; });
}

ExitStatus start_operations(Console& console, const std::vector<std::string>& names,
                            const StartOperation& start) {
  leave_interrupts();
  NodeSessions nodes = sessions_with(console, names);
  Outcomes outcomes;
  for (auto& [node, id, trouble] : nodes.ask<std::string>(start)) {
    if (trouble == kNoAnswer) trouble += "; the operation may have begun";
    outcomes[node] = {.id = std::move(id), .trouble = trouble, .step = {}};
  }
  run_all(nodes, outcomes);
  return tell(console, outcomes);
}

ExitStatus run_operations(Console& console, const NodeOperations& operations) {
  leave_interrupts();
  NodeSessions nodes = sessions_with(console, nodes_of(operations));
  Outcomes outcomes = begun(operations);
  run_all(nodes, outcomes);
  return tell(console, outcomes);
}

ExitStatus stop_operations(Console& console, const NodeOperations& operations) {
  leave_interrupts();
  NodeSessions nodes = sessions_with(console, nodes_of(operations));
  Outcomes outcomes = begun(operations);
  note(outcomes, nodes.ask<QueryResult>([operations](Database& database) {
    database.open();
    return end_operation(database, operations.at(database.name()));
  }));
  return tell(console, outcomes);
}

}  // namespace pulse::console
