// Inquiries: one question to all nodes at the same time, with one deadline for all answers.
//
// Invariants:
// - ask() returns after the patience at the latest, whatever the nodes do.
// - A node with a late question is not asked another question. So a node that hangs holds one
//   thread for each question that began within the patience, and costs later questions no time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "database/node_answer.hpp"

namespace pulse::console {

class Inquiries {
 public:
  // Ends the question at one node: called once, by any thread, also after the end of ask() and of
  // the object. The text tells why the node has no answer; empty for an answer.
  using Ended = std::function<void(const std::string& trouble)>;
  // Begins the question at the node of this number without waiting for the answer. Returns false
  // where nobody asks the node; then nobody calls `ended`.
  using Begin = std::function<bool(std::size_t number, const Ended& ended)>;

  explicit Inquiries(std::vector<std::string> names,
                     std::chrono::milliseconds patience = kNodePatience);

  // For any thread. An outcome of each node; kNoAnswer for a node that nobody has asked.
  NodeOutcomes ask(const Begin& begin);

 private:
  const std::vector<std::string> names_;
  const std::chrono::milliseconds patience_;
  // Of each node: questions that have no answer after the patience.
  const std::shared_ptr<std::vector<std::atomic<int>>> late_;
};

}  // namespace pulse::console
