#include "database/node_sessions.hpp"

#include <thread>
#include <utility>

namespace pulse::console {
namespace {

std::vector<std::string> names_of(const std::vector<NodeDatabase>& nodes) {
  std::vector<std::string> names;
  for (const NodeDatabase& node : nodes) names.push_back(node.name);
  return names;
}

// Returns why the task has no answer; empty for an answer.
std::string trouble_of(const NodeTask& task, std::size_t number, Database& database) {
  try {
    task(number, database);
    return {};
  } catch (const Unreachable& unreachable) {
    return std::string(kNotReached) + ": " + unreachable.what();
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

NodeSessions::NodeSessions(std::vector<NodeDatabase> nodes, std::chrono::milliseconds patience)
    : nodes_(std::make_shared<std::vector<NodeDatabase>>(std::move(nodes))),
      inquiries_(names_of(*nodes_), patience) {}

std::string NodeSessions::run_at(const std::string& name,
                                 const std::function<void(Database& database)>& task) {
  const NodeOutcomes outcomes =
      run([task](std::size_t /*number*/, Database& database) { task(database); }, &name);
  for (const NodeOutcome& outcome : outcomes) {
    if (outcome.node == name) return outcome.trouble;
  }
  return kNoAnswer;
}

NodeOutcomes NodeSessions::run(const NodeTask& task, const std::string* name) {
  return inquiries_.ask([&](std::size_t number, const Inquiries::Ended& ended) {
    if (name != nullptr && (*nodes_)[number].name != *name) return false;
    std::thread([nodes = nodes_, number, task, ended] {
      ended(trouble_of(task, number, (*nodes)[number].database));
    }).detach();
    return true;
  });
}

}  // namespace pulse::console
