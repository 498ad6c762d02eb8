// Node sessions: a session with each of several databases, for a program of a terminal.
#pragma once

#include "database/inquiries.hpp"

namespace pulse::console {

// One of several databases.
struct NodeDatabase {
  std::string name;
  Database database;
};

// A node that hangs holds the thread that asks the node. So a thread may outlive the object and
// main(): a program that has asked nodes ends without destroying what threads use, see main.cpp.
class NodeSessions {
 public:
  explicit NodeSessions(std::vector<NodeDatabase> nodes,
                        std::chrono::milliseconds patience = kNodePatience);

  std::size_t size() const { return nodes_->size(); }

  // Asks all nodes at the same time. Returns an answer of each node, in the order of the command
  // line, after the patience at the latest.
  template <typename Value>
  NodeAnswers<Value> ask(const NodeQuestion<Value>& question) {
    return answers_of<Value>(size(), question,
                             [this](const NodeTask& task) { return run(task, nullptr); });
  }

  // Runs the task at the node of this name. Returns the trouble, empty where the task has ended. A
  // task that is late may have changed the database, and may still change it.
  std::string run_at(const std::string& name, const std::function<void(Database& database)>& task);

 private:
  // At each node, or at the node of this name only.
  NodeOutcomes run(const NodeTask& task, const std::string* name);

  const std::shared_ptr<std::vector<NodeDatabase>> nodes_;  // each used by one thread at a time
  Inquiries inquiries_;
};

}  // namespace pulse::console
