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

// Ends the operation before the last step; of an operation that has ended, tells how it ended.
ExitStatus stop_operation(Console& console, const std::string& id);

// The columns of an operation, as a step returns it.
const Columns& operation_columns();

// What the operation has done: "operation 17 is done: retry of 2 jobs".
std::string outcome_of(const QueryResult::Row& step);
// Whether undo may take something of it back.
bool may_be_undone(const QueryResult::Row& step);

// The actor that the record names: the user of this machine.
std::string actor();

}  // namespace pulse::console
