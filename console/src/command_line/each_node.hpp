// One command for each of several databases: the lists of all nodes are printed as one list.
#pragma once

#include "command_line/command_line.hpp"

namespace pulse::console {

// Runs the command for each node of the console, and prints the lists of all nodes as one list,
// with the fields `node` and `trouble`. The command may run on several threads at the same time. A
// node is a row with trouble where the node has not answered within kNodePatience, refuses the
// command, or is the database of another node. Returns no_database where a node has trouble.
ExitStatus run_for_each_node(Console& console, const Run& run);

}  // namespace pulse::console
