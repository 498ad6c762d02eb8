// Changes of many jobs, in bounded steps: each step is a transaction of its own, and the operation
// is on record. A program that dies in between leaves an operation that another program can go on
// with.
#pragma once

#include <string>

#include "command_line/console.hpp"

namespace pulse::console {

// Runs the remaining steps, with a progress line on a terminal, and tells how many jobs the
// operation has changed.
ExitStatus run_operation(Console& console, const std::string& id);

// Ends the operation before the last step; of an operation that has ended, tells how the operation
// ended.
ExitStatus stop_operation(Console& console, const std::string& id);

// The actor that the record names: the user of this machine.
std::string actor();

}  // namespace pulse::console
