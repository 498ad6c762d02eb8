// How a handler asks all nodes of a server of several databases.
#pragma once

#include <functional>

#include "database/node_answer.hpp"
#include "serve/access.hpp"

namespace pulse::console {

// Runs the task at all nodes at the same time, each with the role of `access`. Returns an outcome
// of each node, in the order of the command line, after kNodePatience at the latest.
using AskNodes = std::function<NodeOutcomes(const Access& access, const NodeTask& task)>;

}  // namespace pulse::console
