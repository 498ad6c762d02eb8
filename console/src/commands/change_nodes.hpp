// A change of the jobs of several databases, the nodes: one operation of each node.
#pragma once

#include <string>

#include "command_line/console.hpp"
#include "job/job_change.hpp"

namespace pulse::console {

// Asks one question, which names each node with the number of its jobs, and starts an operation at
// each node with such jobs. A node with trouble is left alone. `arguments`: a JSON object.
ExitStatus change_jobs_of_nodes(Console& console, const JobChange& change,
                                const std::string& arguments);

}  // namespace pulse::console
