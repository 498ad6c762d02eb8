// pulse operations and undo: the changes of many jobs at once, going on with an operation, taking
// an operation back.
#include "command_line/command_line.hpp"
#include "command_line/filter_options.hpp"
#include "command_line/operation.hpp"
#include "commands/commands.hpp"
#include "list/lists.hpp"

namespace pulse::console {
namespace {

using Act = ExitStatus (*)(Console& console, const std::string& id);

void add_act(CommandLine& line, CLI::App& parent, const char* name, const char* description,
             Act act) {
  auto id = std::make_shared<std::string>();
  line.add_below(parent, name, description,
                 [id, act](Console& console) { return act(console, *id); })
      .add_option("OPERATION", *id, "Id of the operation")
      ->required()
      ->check(is_id());
}

ExitStatus undo(Console& console, const std::string& id) {
  if (!is_confirmed(console, "undo operation " + id + "?")) return ExitStatus::refused;
  const QueryResult started =
      console.database.query("SELECT id FROM pulse.undo_operation($1::bigint, $2)", {id, actor()});
  return run_operation(console, started[0].text("id"));
}

}  // namespace

void add_operations(CommandLine& line) {
  CLI::App& operations =
      line.add("operations", "What was done to many jobs at once", [](Console& console) {
        console.print_list(operation_list().columns,
                           console.database.query(operation_list().sql, {std::nullopt, "100"}));
        return ExitStatus::done;
      });
  add_act(line, operations, "run", "Goes on with one that was interrupted", run_operation);
  add_act(line, operations, "stop", "Ends one before its last step", stop_operation);
  add_act(line, line.root(), "undo", "Takes an operation back where jobs have not moved since",
          undo);
}

}  // namespace pulse::console
