#include "command_line/add_list.hpp"

namespace pulse::console {

CLI::App& add_list(CommandLine& line, const char* name, const char* description, const List& list) {
  return line.add(
      name, description,
      [&list](Console& console) {
        console.print_list(list, console.database.query(list.sql));
        return ExitStatus::done;
      },
      Reach::each_node);
}

}  // namespace pulse::console
