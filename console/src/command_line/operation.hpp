// Changes of many jobs, in bounded steps: each is a transaction of its own, and the operation is on
// record. A program that dies in between leaves it to be run on.
#pragma once

#include <string>

#include "command_line/console.hpp"

namespace pulse::console {

// Runs the steps that are left, with a progress line on a terminal, and tells what was done.
ExitStatus run_operation(Console& console, const std::string& id);

// Ends it before its last step; of one that has ended, tells how.
ExitStatus stop_operation(Console& console, const std::string& id);

// The actor that the record names: the user of this machine.
std::string actor();

}  // namespace pulse::console
