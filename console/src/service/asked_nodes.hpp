// Asked nodes: one question to all nodes at the same time, in sessions of each node's site.
#pragma once

#include <vector>

#include "database/inquiries.hpp"
#include "serve/ask_nodes.hpp"
#include "service/site.hpp"

namespace pulse::console {

class AskedNodes {
 public:
  // The threads of the sites end before this object does.
  explicit AskedNodes(std::vector<Site*> sites);

  // See AskNodes. For any thread that is not of a node's site.
  NodeOutcomes ask(const Access& access, const NodeTask& task);

 private:
  const std::vector<Site*> sites_;
  Inquiries inquiries_;
};

}  // namespace pulse::console
