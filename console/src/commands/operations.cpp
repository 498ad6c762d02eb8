// pulse operations and undo: the changes of many jobs at once, going on with an operation, taking
// an operation back. Of several databases a label names an operation of each.
#include <cstdio>

#include "base/text/inert.hpp"
#include "command_line/command_line.hpp"
#include "command_line/node_operations.hpp"
#include "command_line/operation.hpp"
#include "commands/commands.hpp"
#include "list/lists.hpp"
#include "text/id.hpp"

namespace pulse::console {
namespace {

struct Act {
  ExitStatus (*of_one)(Console& console, const std::string& id);
  ExitStatus (*of_nodes)(Console& console, const NodeOperations& operations);
};

// Returns what is wrong with the operation that the user named; empty if nothing is.
std::string fault_of_operation(const Console& console, const std::string& operation) {
  if (console.nodes.empty()) return is_id_text(operation) ? "" : "is no id";
  const auto operations = parse_label(operation);
  if (!operations) return "names no operations of several databases: NAME:ID,…";
  for (const auto& [name, id] : *operations) {
    if (!has_node(console, name)) return "is of another --database: none is named " + name;
  }
  return {};
}

ExitStatus run(Console& console, const Act& act, const std::string& operation) {
  const std::string fault = fault_of_operation(console, operation);
  if (!fault.empty()) {
    std::fprintf(stderr, "pulse: OPERATION: '%s' %s\n", inert(operation).c_str(), fault.c_str());
    return ExitStatus::usage;
  }
  return console.nodes.empty() ? act.of_one(console, operation)
                               : act.of_nodes(console, *parse_label(operation));
}

void add_act(CommandLine& line, CLI::App& parent, const char* name, const char* description,
             const Act& act) {
  auto operation = std::make_shared<std::string>();
  const auto chosen = [operation, act](Console& console) { return run(console, act, *operation); };
  line.add_below(parent, name, description, chosen, Reach::all_at_once)
      .add_option("OPERATION", *operation,
                  "Id of the operation; of several databases NAME:ID,…, as pulse says")
      ->required()
      ->option_text("ID");
}

std::string start_undo(Database& database, const std::string& id) {
  return database.query("SELECT id FROM pulse.undo_operation($1::bigint, $2)", {id, actor()})[0]
      .text("id");
}

ExitStatus undo(Console& console, const std::string& id) {
  if (!is_confirmed(console, "undo operation " + id + "?")) return ExitStatus::refused;
  return run_operation(console, start_undo(console.database, id));
}

ExitStatus undo_of_nodes(Console& console, const NodeOperations& operations) {
  std::string what;
  std::vector<std::string> names;
  for (const auto& [node, id] : operations) {
    what += (what.empty() ? "operation " : ", operation ") + id + " of " + node;
    names.push_back(node);
  }
  if (!is_confirmed(console, "undo " + what + "?")) return ExitStatus::refused;
  return start_operations(console, names, [operations](Database& database) {
    database.open();
    return start_undo(database, operations.at(database.name()));
  });
}

ExitStatus list_operations(Console& console) {
  console.print_list(operation_list().columns,
                     console.database.query(operation_list().sql, {std::nullopt, "100"}));
  return ExitStatus::done;
}

}  // namespace

void add_operations(CommandLine& line) {
  CLI::App& operations = line.add("operations", "What was done to many jobs at once",
                                  list_operations, Reach::each_node);
  add_act(line, operations, "run", "Goes on with one that was interrupted",
          {run_operation, run_operations});
  add_act(line, operations, "stop", "Ends one before its last step",
          {stop_operation, stop_operations});
  add_act(line, line.root(), "undo", "Takes an operation back where jobs have not moved since",
          {undo, undo_of_nodes});
}

}  // namespace pulse::console
