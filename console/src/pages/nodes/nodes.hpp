// The pages about all nodes of a server of several databases.
#pragma once

#include <memory>

#include "pages/nodes/known_shards.hpp"
#include "serve/ask_nodes.hpp"
#include "serve/router.hpp"

namespace pulse::console {

struct AllNodes {
  std::size_t count;
  AskNodes run;
  std::shared_ptr<KnownShards> shards = std::make_shared<KnownShards>();

  // Asks all nodes at the same time, each with the role of `access`.
  template <typename Value>
  NodeAnswers<Value> ask(const Access& access, const NodeQuestion<Value>& question) const {
    return answers_of<Value>(count, question,
                             [&](const NodeTask& task) { return run(access, task); });
  }
};

// The sum and a row of each node, lists of the jobs of all nodes, and the way from the id of a job
// to the job's node.
void add_nodes_pages(Router& router, std::size_t count, const AskNodes& ask);

// The parts of add_nodes_pages().
void add_nodes_overview(Router& router, const AllNodes& nodes);
void add_node_job_lists(Router& router, const AllNodes& nodes);
void add_node_of_job(Router& router, const AllNodes& nodes);

}  // namespace pulse::console
