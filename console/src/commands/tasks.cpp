// pulse tasks: depth and age of tasks, and which tasks no worker serves.
#include "command_line/add_list.hpp"
#include "command_line/command_line.hpp"
#include "command_line/named_change.hpp"
#include "commands/commands.hpp"
#include "list/lists.hpp"

namespace pulse::console {
namespace {

constexpr NamedChange kUnset{
    "unset", "Takes its settings away",
    "SELECT json_build_object('identifier', $1::text, 'had_settings', pulse.unset_task($1))"
    " AS document",
    "has no settings"};

}  // namespace

void add_tasks(CommandLine& line) {
  CLI::App& tasks = add_list(line, "tasks", "Tasks with jobs or settings", task_list());
  add_named_change(line, tasks, "task", kUnset);
}

}  // namespace pulse::console
