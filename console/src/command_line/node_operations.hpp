// Operations at several databases, the nodes: one operation of each node, at the same time. Each
// operation is on record at its node, and the operations are no transaction together: where a node
// fails, the others go on.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command_line/console.hpp"

namespace pulse::console {

// The ids of the operations by the NAMEs of the nodes.
using NodeOperations = std::map<std::string, std::string>;
// "eu:17,us:4": the label of a change of several nodes.
std::string label_of(const NodeOperations& operations);
std::optional<NodeOperations> parse_label(std::string_view label);

// A change waits longer for each node than a list: a step may wait for locks of busy jobs, and a
// node that is left alone needs another change.
constexpr std::chrono::seconds kChangePatience(10);

// Whether a database of the console has this name.
bool has_node(const Console& console, const std::string& name);

// Starts an operation; returns its id.
using StartOperation = std::function<std::string(Database& database)>;

// Starts an operation at each node of these names, runs the steps of all at the same time, and
// prints the outcome of each. Returns no_database where a node has trouble; the other nodes go on.
ExitStatus start_operations(Console& console, const std::vector<std::string>& names,
                            const StartOperation& start);
// Runs the remaining steps, or ends the operations before their last step.
ExitStatus run_operations(Console& console, const NodeOperations& operations);
ExitStatus stop_operations(Console& console, const NodeOperations& operations);

}  // namespace pulse::console
