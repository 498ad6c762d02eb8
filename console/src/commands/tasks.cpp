// pulse tasks: depth and age of tasks, and which of them no worker serves.
#include "command_line/command_line.hpp"
#include "commands/commands.hpp"
#include "list/lists.hpp"

namespace pulse::console {

void add_tasks(CommandLine& line) {
  line.add("tasks", "Tasks with jobs or settings", [](Console& console) {
    console.print_list(task_list().columns, console.database.query(task_list().sql));
    return ExitStatus::done;
  });
}

}  // namespace pulse::console
