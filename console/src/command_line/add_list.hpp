// Commands that print a list.
#pragma once

#include "command_line/command_line.hpp"
#include "list/lists.hpp"

namespace pulse::console {

// Adds a command that prints the list, of one database or of each node. The list has no parameters
// and lives as long as the program.
CLI::App& add_list(CommandLine& line, const char* name, const char* description, const List& list);

}  // namespace pulse::console
